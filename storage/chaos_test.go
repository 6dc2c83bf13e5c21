package storage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"iop/fsm"
)

var (
	chaosSeed = flag.Uint64("storage.seed", 0, "seed of TestFaults; 0 = the time")
	chaosFor  = flag.Duration("storage.for", 5*time.Second, "how long TestFaults makes faults")
)

// clients admit and release at one replica, whatever becomes of it, and keep count of what they are told.
type clients struct {
	t     *testing.T
	c     *cluster
	id    string
	quit  chan struct{}
	group sync.WaitGroup

	granted  atomic.Int64
	refused  atomic.Int64
	sessions atomic.Int64

	all *grants // of all replicas
}

// grants are all leases that anybody was told of.
type grants struct {
	mu     sync.Mutex
	leases map[fsm.LeaseID]string
}

func (g *grants) add(t *testing.T, lease fsm.LeaseID, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if other, double := g.leases[lease]; double {
		t.Errorf("lease %d was granted to %s and to %s", lease, other, id)
	}
	g.leases[lease] = id
}

func (k *clients) run() {
	for n := 0; ; n++ {
		select {
		case <-k.quit:
			return
		default:
		}
		s := k.c.store(k.id)
		if s == nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if x := k.session(s); x != nil {
			k.sessions.Add(1)
			k.use(x, n)
		}
	}
}

func (k *clients) session(s *Store) *Session {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	x, err := s.OpenSession(ctx, fsm.EdgeID(k.id), nil)
	if err != nil {
		k.allowed("open session", err)
		return nil
	}
	for {
		o, err := x.Do(ctx, &fsm.RegisterNode{Node: "n1", Instance: 7})
		if err == nil {
			_, err = x.Do(ctx, &fsm.NodeReady{Node: "n1", Generation: o.Generation})
		}
		if err == nil {
			return x
		}
		k.allowed("register", err)
		if !errors.Is(err, ErrNoLeader) && !errors.Is(err, ErrOverloaded) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// allowed fails the test for an error that a proposal must not end with.
func (k *clients) allowed(what string, err error) {
	for _, ok := range []error{ErrNoLeader, ErrOverloaded, ErrSessionEnded, ErrClosed, ErrFailed} {
		if errors.Is(err, ok) {
			k.refused.Add(1)
			return
		}
	}
	k.t.Errorf("%s: %s: %v", k.id, what, err)
}

// use works with a session until it ends.
func (k *clients) use(x *Session, n int) {
	var ended atomic.Bool
	var wait sync.WaitGroup
	for w := range 4 {
		wait.Go(func() {
			for i := 0; !ended.Load(); i++ {
				select {
				case <-k.quit:
					return
				default:
				}
				err := k.pair(x, fmt.Sprintf("%s-%d-%d-%d-%d", k.id, x.ID(), n, w, i))
				if err != nil && !errors.Is(err, ErrNoLeader) && !errors.Is(err, ErrOverloaded) {
					ended.Store(true)
				} else if err != nil {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	wait.Wait()
}

func (k *clients) pair(x *Session, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	o, err := x.Do(ctx, admit(id))
	if err != nil {
		k.allowed("admit", err)
		return err
	}
	if o.Code != fsm.Granted {
		return nil // its node's link is gone
	}
	k.granted.Add(1)
	k.all.add(k.t, o.Grant.Lease, id)
	o, err = x.Do(ctx, &fsm.Release{Lease: o.Grant.Lease, Reason: fsm.ReasonDone})
	if err != nil {
		k.allowed("release", err)
		return err
	}
	if o.Code != fsm.Returned && o.Code != fsm.AlreadyReleased {
		k.t.Errorf("release: %v", o.Code)
	}
	return nil
}

// TestFaults: clients at three replicas while these are killed, cut off, and started again from copies of their
// directories. Each command has one outcome, each lease one owner, and all states are the same in the end.
func TestFaults(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	snapshots := 0
	r := rand.New(rand.NewPCG(seed, 1))
	c := newCluster(t, "e1", "e2", "e3")
	c.tune = func(id string, o *Options) {
		o.snapshotEach, o.checkEach, o.keepEntries = 300, 100, 50
		o.History = History{MaxBytes: 1, MaxAge: time.Nanosecond} // who was away for a while gets a snapshot
		o.Cluster.SessionTTL = time.Second
		if id == "e3" { // a slow disk
			o.wrap = func(f logFile) logFile { return &slowFile{f} }
		}
	}
	c.start()
	configure(t, c.leader(), world(1, 1000))
	told := &grants{leases: map[fsm.LeaseID]string{}}
	var all []*clients
	quit := make(chan struct{})
	for _, id := range c.ids {
		k := &clients{t: t, c: c, id: id, quit: quit, all: told}
		k.group.Go(k.run)
		all = append(all, k)
	}
	for end := time.Now().Add(*chaosFor); time.Now().Before(end) && !t.Failed(); {
		fault(t, c, r)
		for _, s := range c.running() {
			if installed(s.guard) != "" {
				snapshots++
			}
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
	}
	c.net.heal()
	c.until("all to go on", func() bool {
		before := make([]int64, len(all))
		for i, k := range all {
			before[i] = k.granted.Load()
		}
		for i, k := range all {
			for end := time.Now().Add(long / 2); k.granted.Load() == before[i]; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Logf("%s stands still", k.id)
					return false
				}
			}
		}
		return true
	})
	close(quit)
	t.Logf("a replica with the leader's snapshot was seen %d times", snapshots)
	for _, k := range all {
		k.group.Wait()
		t.Logf("%s: %d granted, %d refused or unknown, %d sessions", k.id, k.granted.Load(), k.refused.Load(), k.sessions.Load())
	}
	c.agree()
	for _, s := range c.running() {
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
}

// fault makes one and heals it.
func fault(t *testing.T, c *cluster, r *rand.Rand) {
	id := c.ids[r.IntN(len(c.ids))]
	other := c.ids[r.IntN(len(c.ids))]
	pause := time.Duration(50+r.IntN(1500)) * time.Millisecond
	switch what := r.IntN(6); what {
	case 0, 1:
		if what == 0 {
			id = c.leader().options.Replica
		}
		c.kill(id)
		time.Sleep(pause)
		c.startThese(id)
	case 2: // a machine that is replaced by a copy of its disk
		c.kill(id)
		into := filepath.Join(t.TempDir(), id)
		if err := os.CopyFS(into, os.DirFS(c.dirs[id])); err != nil {
			t.Fatal(err)
		}
		c.dirs[id] = into
		c.startThese(id)
	case 3:
		c.net.isolate(id, true)
		time.Sleep(pause)
		c.net.heal()
	case 4: // one way
		c.net.set(id, other, true)
		time.Sleep(pause)
		c.net.heal()
	case 5:
		l := c.leader()
		if err := l.Transfer(within(t), ""); err != nil {
			t.Logf("transfer: %v", err)
		}
	}
}

// slowFile is a disk that takes its time.
type slowFile struct{ logFile }

func (f *slowFile) StoreLogs(logs []*raft.Log) error {
	time.Sleep(3 * time.Millisecond)
	return f.logFile.StoreLogs(logs)
}
