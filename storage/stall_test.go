package storage

import (
	"sync"
	"testing"
	"time"
)

// TestLeaderWhoseDiskHangsLosesLeadership: raft's heartbeats go on while its log takes a write and does not come back, so
// without more the others would follow a leader that can log nothing until its process ends.
func TestLeaderWhoseDiskHangsLosesLeadership(t *testing.T) {
	t.Parallel()
	logs := map[string]*faultyLog{}
	c := newCluster(t, "a", "b", "c")
	for _, id := range c.ids {
		logs[id] = &faultyLog{hang: make(chan struct{})}
	}
	c.tune = func(id string, o *Options) {
		o.hungAfter = time.Hour // the loss of leadership must not need the end of the store
		o.wrap = func(l logFile) logFile { logs[id].logFile = l; return logs[id] }
	}
	c.start()
	old := c.leader()
	log := logs[old.options.Replica]
	goOn := sync.OnceFunc(func() { log.once.Store(false); close(log.hang) })
	t.Cleanup(goOn) // before the cluster ends
	log.once.Store(true)
	old.put(old.plain, world(1, 1), nobody{}, true) // the write that hangs
	c.until("another leads", func() bool {
		for _, s := range c.running() {
			if s != old && s.leads() {
				return true
			}
		}
		return false
	})
	goOn() // the disk was only slow
	c.until("it follows", func() bool { return old.group.log.leader() != "" && !old.leads() })
	c.agree()
	if old.Err() != nil {
		t.Error(old.Err())
	}
}

// TestHungWriteIsSeenBehindOthers: a follower's heartbeat, a vote or a snapshot want to write too, and wait behind the
// write that hangs; each new one must not begin the count anew.
func TestHungWriteIsSeenBehindOthers(t *testing.T) {
	t.Parallel()
	hang, failed := make(chan struct{}), make(chan error, 1)
	g := &guard{fail: func(err error) { failed <- err }}
	quit := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { g.watch(200*time.Millisecond, quit) })
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	giveUp := time.After(long)
	for err := error(nil); err == nil; {
		select {
		case err = <-failed:
		case <-ticker.C:
			wait.Go(func() { _ = g.write("hang", func() error { <-hang; return nil }) })
		case <-giveUp:
			err = errHung
			t.Error("nobody saw it")
		}
	}
	close(quit)
	close(hang)
	wait.Wait()
}
