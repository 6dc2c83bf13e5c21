package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/storage"
)

// end demands, with all faults mended and all replicas running: what the clients were promised, nothing held or counted
// anywhere, no backend beyond its capacity, and the same state in all logs, each of which leads to it by the rules.
func (x *rush) end() tally {
	t := x.c.t
	t.Helper()
	x.stop()
	s := x.remember()
	x.idle()
	x.c.sameStates()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refreshed[200] == 0 {
		t.Errorf("no refresh got through: %v", x.refreshed)
	}
	t.Logf("%v; refreshes by status: %v", s, x.refreshed)
	t.Logf("served in each second:%s", x.pace())
	return s
}

// idle waits until nothing is held or waits, as every replica sees it, and no backend does anything.
func (x *rush) idle() {
	t := x.c.t
	t.Helper()
	for i := range x.c.replicas {
		x.c.at(i).awaitIdle()
	}
	for name, b := range map[string]*backend.Backend{"p1": x.m[0], "p2": x.m[1], "line": x.line, "probe": x.probe} {
		await(t, "the backend of "+name+" is idle", func() bool { return b.Stats().Current == 0 })
		if s := b.Stats(); s.Violations != 0 {
			t.Errorf("the backend of %s got more than its capacity: %+v", name, s)
		}
	}
}

// sameStates has the replicas compare themselves, waits until all have applied the same, kills them, and holds their directories against each other:
// the same digest at that index, and every state on the way there by the rules. Every lease was returned once.
func (c *cluster) sameStates() {
	c.t.Helper()
	c.sameState(0, len(c.replicas))
	index := c.agree()
	for i := range c.replicas {
		c.kill(i)
	}
	digests := make([]string, len(c.replicas))
	for i, w := range c.replicas {
		digests[i] = digestAt(c.t, w.dataDir(), index)
	}
	if slices.ContainsFunc(digests, func(d string) bool { return d != digests[0] }) {
		c.t.Errorf("the digests at entry %d differ: %q", index, digests)
	}
}

// digestAt reads the directory of a killed replica: the digest at an index, with nothing held there.
func digestAt(t testing.TB, dir string, index uint64) string {
	t.Helper()
	p, err := storage.OpenPast(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if _, err = p.Check(ctx, 1, nil); err != nil {
		t.Fatal(err)
	}
	m, err := p.At(ctx, index)
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Snapshot(); s.Granted != s.Returned || len(m.Leases())+len(m.Waiters()) != 0 {
		t.Errorf("%s: granted %d, returned %d, %d leases, %d waiters at entry %d", dir, s.Granted, s.Returned, len(m.Leases()), len(m.Waiters()), index)
	}
	d := m.Digest()
	return hex.EncodeToString(d[:])
}

// caughtUp waits until a replica has applied what its leader had applied when it was asked, and has ready links.
func (c *cluster) caughtUp(i int) {
	c.t.Helper()
	w := c.at(c.leader())
	index := w.status().AppliedIndex
	await(c.t, fmt.Sprintf("%s has applied entry %d", c.id(i), index), func() bool {
		s, err := c.at(i).tryStatus()
		return err == nil && s.AppliedIndex >= index
	})
	for _, n := range c.layout.nodes() {
		c.awaitLinks(n)
	}
}

// nextGrant asks the given replicas, all at once and again and again, until each has served a request that came after
// since. It returns how long the first and the last of them took.
func (x *rush) nextGrant(since time.Time, at ...int) (first, last time.Duration) {
	x.c.t.Helper()
	took := make(chan time.Duration, len(at))
	for _, i := range at {
		x.wait.Go(func() {
			for n := 0; x.ctx.Err() == nil; n++ {
				a := call(x.ctx, x.c.own(i, 8080), ask{model: "probe", tag: "probe"})
				if a.status == 200 && a.clean {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			took <- time.Since(since)
		})
	}
	for range at {
		select {
		case d := <-took:
			if first == 0 {
				first = d
			}
			last = d
		case <-time.After(patience):
			x.c.t.Fatalf("no grant through %v in %v", at, patience)
		}
	}
	return first, last
}

// quantiles are the p50, p99 and the largest of some times.
func quantiles(ds []time.Duration) string {
	if len(ds) == 0 {
		return "none"
	}
	s := slices.Sorted(slices.Values(ds))
	at := func(q float64) time.Duration { return s[min(len(s)-1, int(q*float64(len(s))))].Round(time.Millisecond) }
	return fmt.Sprintf("%d rounds: p50 %v, p99 %v, max %v", len(s), at(0.5), at(0.99), s[len(s)-1].Round(time.Millisecond))
}
