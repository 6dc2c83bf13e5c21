package edged

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"iop/configs"
	"iop/edged/refresh"
	"iop/fsm"
)

// await waits until a fact holds.
func await(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !fact(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not yet: %s", what)
		}
	}
}

func (d *Daemon) sessionInLog() (id fsm.SessionID) {
	d.store.View(func(m *fsm.Machine) { id, _ = m.CurrentSession(d.tenure.edge) })
	return id
}

// TestEdgeThatIsReplacedEnds: another process opens a session with the same edge id. The edge ends with an error that says
// so, and does not take the session back.
func TestEdgeThatIsReplacedEnds(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "edge.yaml")
	if err := os.WriteFile(path, newFile().text(filepath.Join(dir, "data")), 0o600); err != nil {
		t.Fatal(err)
	}
	config, _, err := configs.LoadEdge(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{Config: config, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- d.Run(context.Background()) }()
	<-d.Ready()
	twin, err := d.store.OpenSession(t.Context(), "e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-end; !errors.Is(err, errReplaced) {
		t.Fatal(err)
	}
	select {
	case <-twin.Ended():
		t.Error("it took the session back")
	default:
	}
	if now := d.sessionInLog(); now != twin.ID() {
		t.Errorf("the session is %d, want the twin's, %d", now, twin.ID())
	}
}

// TestSessionAfterSession: the session is ended again and again. Each time the edge has a new one and is ready; and a
// configuration that was applied just when there was none, and that no session was told of, is in use all the same.
func TestSessionAfterSession(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	for round := range 20 {
		f := newFile()
		f.queue = 100 + round
		old := r.sessionInLog()
		c, _, err := configs.ParseEdge(f.text(r.dir), "candidate", nil)
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if err := r.EndSession(t.Context()); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			_, err := r.store.Do(t.Context(), &fsm.ApplyConfig{Document: c.Canonical(), Config: refresh.Plan(&c.Cluster), Force: true})
			if err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		await(t, "there is another session", func() bool { return r.notReady() == nil && r.sessionInLog() > old })
		await(t, "the configuration is in use", func() bool { return r.view.load().cluster.ProviderPool.MaxQueue == 100+round })
	}
}
