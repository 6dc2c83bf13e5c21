package storage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"iop/fsm"
)

// TestDivergedReplicaFails: a replica whose digest is not the leader's leaves its state in its directory and fails.
func TestDivergedReplicaFails(t *testing.T) {
	dir := t.TempDir()
	var failed error
	computed := make(chan fsm.DigestCheck, 4)
	d := &digests{
		each: 10, cluster: func() string { return "c" }, dir: dir, own: map[uint64]*digested{},
		fail: func(err error) { failed = err }, computed: func(c fsm.DigestCheck) { computed <- c },
	}
	m := fsm.New()
	d.applied(9, m.Image)
	d.applied(12, m.Image)
	own := <-computed
	d.group.Wait()
	if own.Index != 12 {
		t.Fatalf("digest of entry %d", own.Index)
	}
	d.compare(own)
	d.compare(fsm.DigestCheck{Index: 11})
	if failed != nil {
		t.Fatalf("failed without a difference: %v", failed)
	}
	own.Digest[0]++
	d.compare(own)
	if !errors.Is(failed, ErrDiverged) {
		t.Fatalf("a difference was not noticed: %v", failed)
	}
	f, err := os.Open(filepath.Join(dir, "diverged-12.state"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if cluster, img, err := DecodeState(f); err != nil || cluster != "c" || img.Digest() != m.Digest() {
		t.Errorf("the dump can't be read: %v", err)
	}
}

// TestDigestsAreCompared: replicas take the digest at the same entry, and meet the leader's in the log.
func TestDigestsAreCompared(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3")
	c.tune = func(_ string, o *Options) { o.checkEach = 20 }
	c.start()
	l := c.leader()
	configure(t, l, world(1, 1000))
	c.until("the feature level", func() bool { return l.replica.level.Load() >= fsm.LevelOf(&fsm.DigestCheck{}) })
	x := runningAt(t, l, nil)
	checkedAt := func(s *Store) (n uint64) {
		s.View(func(m *fsm.Machine) { n = m.Checked() })
		return n
	}
	for i := 0; checkedAt(l) < 60; i++ {
		o := must(t, x, admit("r"), fsm.Granted)
		must(t, x, &fsm.Release{Lease: o.Grant.Lease}, fsm.Returned)
		if i > 1000 {
			t.Fatal("no digest is ever logged")
		}
	}
	c.agree()
	for _, s := range c.running() {
		d := s.replica.digests
		d.group.Wait()
		d.mu.Lock()
		own := d.own[checkedAt(s)]
		d.mu.Unlock()
		if own == nil || !own.ready {
			t.Errorf("%s has no digest of entry %d", s.options.Replica, checkedAt(s))
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
}
