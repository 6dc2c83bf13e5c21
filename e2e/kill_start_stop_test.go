package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/storage"
)

// TestSigkillDuringTheFirstStart: wherever a first start is killed, the next one finishes it by itself; once a directory
// is somebody's, it stays the same one.
func TestSigkillDuringTheFirstStart(t *testing.T) {
	t.Parallel()
	r := dice(t)
	w := newEmptyWorld(t, shared(newBackend(t, backend.Options{}), 1))
	unfinished := 0
	for round := range rounds(5, 60) {
		data := w.path(fmt.Sprint("first", round))
		file := w.write(fmt.Sprintf("first%d.yaml", round), w.layout.edgeFile("edge-1", data))
		cluster := ""
		for try := 0; ; try++ {
			p := w.spawnEdge(file)
			select {
			case <-p.out.ready:
			case <-p.done:
				t.Fatalf("round %d: edged ended by itself:\n%s", round, tail(p.out.String(), 20))
			case <-time.After(time.Duration(r.IntN(40_000)) * time.Microsecond): // the random moment
			}
			p.kill()
			_, info, err := storage.Inspect(data)
			if err == nil {
				if cluster != "" && info.Cluster != cluster {
					t.Fatalf("round %d: cluster %s became %s", round, cluster, info.Cluster)
				}
				cluster = info.Cluster
			} else if cluster != "" || !errors.Is(err, storage.ErrNotOurs) && !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("round %d, start %d: %v", round, try, err)
			} else {
				unfinished++
			}
			if cluster != "" && try >= 2 || try == 8 {
				break
			}
		}
		p := w.spawnEdge(file)
		p.awaitReady(t)
		p.kill()
		if _, info, err := storage.Inspect(data); err != nil || cluster != "" && info.Cluster != cluster {
			t.Fatalf("round %d: cluster %s, then %s: %v", round, cluster, info.Cluster, err)
		}
	}
	t.Logf("%d kills came before the first start was done", unfinished)
}

// TestSigkillDuringAnOrderlyStop: a stop that is cut short at any moment leaves what a kill leaves, or what a stop
// leaves, and nothing that was admitted is forgotten.
func TestSigkillDuringAnOrderlyStop(t *testing.T) {
	t.Parallel()
	r := dice(t)
	b := newBackend(t, backend.Options{Limit: 2, Default: backend.Plan{Tokens: 2}})
	l := shared(b, 2)
	l.throttled = true
	w := newWorld(t, l)
	stopped, cut := 0, 0
	for round := range rounds(10, 60) {
		w.awaitLink("n1")
		for i := range 3 {
			w.want(200, ask{tag: fmt.Sprintf("round%d-%d", round, i)})
		}
		terminate(t, w.edge.process)
		select {
		case <-w.edge.done:
		case <-time.After(time.Duration(r.IntN(25_000)) * time.Microsecond): // the random moment
		}
		w.edge.kill()
		m := inspect(t, w.dataDir())
		nothingLost(t, b, m)
		if len(m.Snapshot().Sessions) == 0 {
			stopped++
		} else {
			cut++
		}
		if left, _ := filepath.Glob(filepath.Join(w.dataDir(), "*.tmp")); len(left) > 1 {
			t.Errorf("left behind: %v", left)
		}
		w.restartEdge()
		// A fresh noded, whose reconnects have not slowed down yet.
		w.nodes["n1"].kill()
		w.startNode("n1")
	}
	w.awaitLink("n1")
	w.want(200, ask{tag: "after"})
	w.awaitIdle()
	t.Logf("%d stops had ended their session, %d had not", stopped, cut)
}
