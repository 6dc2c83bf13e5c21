package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iop/fsm"
)

// submit is a background response whose payload can be told from others.
func submit(id string) *fsm.Submit {
	return &fsm.Submit{
		Response: fsm.ResponseID(id), Request: fsm.Admit{Model: "m"},
		Payload: fsm.Payload{Record: []byte("asked " + id), Object: []byte("queued " + id), Events: []byte("0"), Count: 1},
	}
}

// say adds an event to a response that runs, or ends it.
func say(s *Store, id string, event int, status fsm.ResponseStatus) *fsm.Progress {
	_, lease, _ := s.ResponseRow(fsm.ResponseID(id))
	p := &fsm.Progress{Response: fsm.ResponseID(id), Lease: lease, Status: status, Payload: fsm.Payload{Events: fmt.Append(nil, event), Count: 1}}
	if status.Final() {
		p.Object = []byte("ended " + id)
	}
	return p
}

// toldOf reads all events of a response, and its object.
func toldOf(t testing.TB, s *Store, id string) string {
	t.Helper()
	r, err := s.Response(fsm.ResponseID(id))
	if err != nil {
		return err.Error()
	}
	events, _, err := s.ResponseEvents(fsm.ResponseID(id), 0)
	if err != nil {
		return err.Error()
	}
	text := string(r.Record) + "|" + string(r.Object) + "|"
	for _, e := range events {
		text += string(e.Bytes)
	}
	return text
}

func wholeVault(t testing.TB, s *Store) {
	t.Helper()
	s.View(func(m *fsm.Machine) {
		if _, err := compareVault(s.vault, m); err != nil {
			t.Error(err)
		}
	})
}

func wantTold(t testing.TB, s *Store, id, want string) {
	t.Helper()
	if got := toldOf(t, s, id); got != want {
		t.Errorf("%s: %q, want %q", id, got, want)
	}
}

// TestResponsesOutliveEverything: orderly stop, crash before and after the vault has its writes, and a snapshot.
func TestResponsesOutliveEverything(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 10), nil)
	must(t, x, submit("a"), fsm.Queued)
	must(t, x, say(s, "a", 1, fsm.ResponseInProgress), fsm.Done)
	must(t, x, submit("b"), fsm.Queued)
	must(t, x, &fsm.Keep{Response: "c", Status: fsm.ResponseCompleted, Payload: fsm.Payload{Record: []byte("asked c"), Object: []byte("{}")}}, fsm.Done)
	wantTold(t, s, "a", "asked a|queued a|01")
	if err := s.vault.flush(0); err != nil {
		t.Fatal(err)
	}
	must(t, x, say(s, "a", 2, fsm.ResponseCompleted), fsm.Done) // it is in the log, and not in the file
	must(t, x, &fsm.Forget{Response: "b"}, fsm.Done)
	wantTold(t, s, "a", "asked a|ended a|012")
	wantTold(t, s, "b", ErrNoResponse.Error())
	crashed := t.TempDir()
	copyTree(t, dir, crashed)
	closeStore(t, s)

	for _, d := range []string{dir, crashed} {
		s := openAt(t, d)
		wantTold(t, s, "a", "asked a|ended a|012")
		wantTold(t, s, "b", ErrNoResponse.Error())
		wantTold(t, s, "c", "asked c|{}|")
		wholeVault(t, s)
		if err := s.log.snapshot(); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		s = openAt(t, d)
		wantTold(t, s, "a", "asked a|ended a|012")
		closeStore(t, s)
	}
	p, err := OpenPast(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if a, err := p.Check(within(t), 1, nil); err != nil || a.Stored.Responses != 2 {
		t.Error(a, err)
	}
}

// copyTree copies a data directory as a crash leaves it.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(to, lockFile))
}

// TestMissingVault: without the file, or with an older one, the store does not open and says what to do; a value that was
// changed is found.
func TestMissingVault(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 10), nil)
	must(t, x, submit("a"), fsm.Queued)
	if err := s.log.snapshot(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, vaultDB)
	early, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	must(t, x, say(s, "a", 1, fsm.ResponseCompleted), fsm.Done)
	if err := s.log.snapshot(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	late, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, words ...string) {
		t.Helper()
		_, err := Open(within(t), Options{Dir: dir, Replica: "e1"})
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: %v", what, err)
		}
		for _, w := range append(words, vaultDB, "restore the directory from a backup") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", what, err, w)
			}
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("missing", "is missing")
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(early)
	refused("older", "presumes more")
	write([]byte("nonsense"))
	refused("no vault")
	write(bytes.ReplaceAll(late, []byte("asked a"), []byte("Asked a"))) // also where it is not any more
	p, err := OpenPast(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Check(within(t), 1, nil); !errors.Is(err, ErrDamaged) {
		t.Error("a changed payload is not found:", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	write(late)
	wantTold(t, openAt(t, dir), "a", "asked a|ended a|01")
}

// TestBackupHasResponses: of a running replica, of a crashed directory, and recovered; what is written afterwards is
// kept, too.
func TestBackupHasResponses(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 10), nil)
	must(t, x, submit("a"), fsm.Queued)
	must(t, x, submit("b"), fsm.Queued)
	must(t, x, say(s, "a", 1, fsm.ResponseCompleted), fsm.Done)
	var online, offline bytes.Buffer
	if _, err := s.Backup(&online); err != nil {
		t.Fatal(err)
	}
	must(t, x, &fsm.Forget{Response: "b"}, fsm.Done)
	crashed := filepath.Join(t.TempDir(), "data")
	copyTree(t, dir, crashed)
	closeStore(t, s)
	if _, err := BackupDirectory(crashed, "v1", &offline); err != nil {
		t.Fatal(err)
	}
	look := func(what, dir string, b string) {
		t.Helper()
		s := openAt(t, dir)
		wantTold(t, s, "a", "asked a|ended a|01")
		wantTold(t, s, "b", b)
		wholeVault(t, s)
		x, err := s.OpenSession(within(t), "e1", nil)
		if err != nil {
			t.Fatal(what, err)
		}
		must(t, x, &fsm.Keep{Response: "later", Status: fsm.ResponseCompleted, Payload: fsm.Payload{Record: []byte("asked"), Object: []byte("{}")}}, fsm.Done)
		wantTold(t, s, "later", "asked|{}|")
		closeStore(t, s)
		s = openAt(t, dir)
		wantTold(t, s, "later", "asked|{}|")
		wholeVault(t, s)
		closeStore(t, s)
	}
	for what, b := range map[string][]byte{"online": online.Bytes(), "offline": offline.Bytes()} {
		to := filepath.Join(t.TempDir(), "data")
		if _, err := Restore(bytes.NewReader(b), to, "e1", "v1"); err != nil {
			t.Fatal(what, err)
		}
		want := ErrNoResponse.Error()
		if what == "online" {
			want = "asked b|queued b|0"
		}
		look(what, to, want)
		for _, at := range []int{len(b) / 2, len(b) - 60, len(b) - 5} {
			bad := append([]byte(nil), b...)
			bad[at] ^= 1
			if _, _, err := ReadBackup(bytes.NewReader(bad)); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: byte %d changed: %v", what, at, err)
			}
		}
	}
	if _, err := Recover(within(t), crashed, "v1"); err != nil {
		t.Fatal(err)
	}
	look("recovered", crashed, ErrNoResponse.Error())
}

// TestFollowerGetsResponses: with each entry, and with the leader's snapshot when it was away for too long.
func TestFollowerGetsResponses(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3")
	c.tune = func(_ string, o *Options) {
		o.snapshotEach, o.keepEntries = 50, 10
		o.History = History{MaxBytes: 1, MaxAge: time.Nanosecond}
	}
	c.start()
	configure(t, c.leader(), world(1, 10_000))
	c.until("the feature level", func() bool { return c.leader().Level() >= 4 })
	l := c.leader()
	x := runningAt(t, l, nil)
	must(t, x, submit("a"), fsm.Queued)
	must(t, x, submit("gone"), fsm.Queued)
	must(t, x, say(l, "a", 1, fsm.ResponseInProgress), fsm.Done)
	c.agree()
	for _, s := range c.running() {
		wantTold(t, s, "a", "asked a|queued a|01")
	}
	away := c.follower().options.Replica
	c.close(away)
	l = c.leader()
	must(t, x, &fsm.Forget{Response: "gone"}, fsm.Done)
	must(t, x, submit("b"), fsm.Queued)
	for i := 0; ; i++ {
		must(t, x, admit(fmt.Sprint("r", i)), fsm.Granted)
		if first, _, err := l.bounds(); err == nil && first > 100 {
			break
		}
		if i > 9000 {
			t.Fatal("the log is never cut")
		}
	}
	must(t, x, say(l, "a", 2, fsm.ResponseCompleted), fsm.Done)
	c.startThese(away)
	c.agree()
	back := c.store(away)
	if installed(back.guard) == "" {
		t.Error("it caught up without the leader's snapshot: the test does not test")
	}
	for range 2 {
		wantTold(t, back, "a", "asked a|ended a|012")
		wantTold(t, back, "b", "asked b|queued b|0")
		wantTold(t, back, "gone", ErrNoResponse.Error())
		wholeVault(t, back)
		c.close(away)
		c.startThese(away)
		c.agree()
		back = c.store(away)
	}
}

// TestChangesAreHeard: who waits for a response hears of each change.
func TestChangesAreHeard(t *testing.T) {
	s := openAt(t, t.TempDir())
	x := running(t, s, world(1, 10), nil)
	must(t, x, submit("a"), fsm.Queued)
	for i, c := range []fsm.Command{say(s, "a", 1, fsm.ResponseInProgress), say(s, "a", 2, fsm.ResponseCompleted), &fsm.Forget{Response: "a"}} {
		changed := s.ResponseChanges("a")
		must(t, x, c, fsm.Done)
		select {
		case <-changed:
		case <-within(t).Done():
			t.Fatal("nothing is heard of change ", i)
		}
	}
}
