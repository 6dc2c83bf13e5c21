package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"iop/fsm"
)

// cluster is replicas in one process, with real files and sockets.
type cluster struct {
	t    testing.TB
	net  *testNet
	ids  []string
	dirs map[string]string
	at   map[string]string // addresses
	tune func(id string, o *Options)

	mu     sync.Mutex
	stores map[string]*Store
}

func newCluster(t testing.TB, ids ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, net: newTestNet(), ids: ids, dirs: map[string]string{}, at: map[string]string{}, stores: map[string]*Store{}}
	for _, id := range ids {
		c.dirs[id] = filepath.Join(t.TempDir(), id)
		s := c.net.open(t, id, "")
		c.at[id] = s.address()
		s.close()
	}
	t.Cleanup(c.stop)
	return c
}

func (c *cluster) peers() []Member {
	var out []Member
	for _, id := range c.ids {
		out = append(out, Member{ID: id, Address: c.at[id]})
	}
	return out
}

// open opens a replica with the peers given.
func (c *cluster) open(id string, peers []Member) (*Store, error) {
	site := c.net.open(c.t, id, c.at[id])
	o := Options{
		Dir: c.dirs[id], Replica: id, Version: "v1", Logger: testLogger(c.t).With("replica", id),
		Cluster: &Cluster{Address: c.at[id], Peers: peers, Network: site, Serve: site.serve},
	}
	if c.tune != nil {
		c.tune(id, &o)
	}
	s, err := Open(within(c.t), o)
	if err != nil {
		site.close()
		return nil, err
	}
	c.mu.Lock()
	c.stores[id] = s
	c.mu.Unlock()
	return s, nil
}

// start starts all replicas at the same time.
func (c *cluster) start() *cluster {
	c.t.Helper()
	c.startThese(c.ids...)
	return c
}

func (c *cluster) startThese(ids ...string) {
	c.t.Helper()
	var wait sync.WaitGroup
	for _, id := range ids {
		wait.Go(func() {
			if _, err := c.open(id, c.peers()); err != nil {
				c.t.Errorf("open %s: %v", id, err)
			}
		})
	}
	wait.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
}

func (c *cluster) store(id string) *Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stores[id]
}

func (c *cluster) running() []*Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Store
	for _, id := range c.ids {
		if s := c.stores[id]; s != nil {
			out = append(out, s)
		}
	}
	return out
}

// close stops a replica in an orderly way.
func (c *cluster) close(id string) {
	c.t.Helper()
	s := c.store(id)
	if s == nil {
		return
	}
	closeStore(c.t, s)
	c.gone(id)
}

// kill ends a replica without grace: its network goes at once, nobody is told anything, nothing more is done.
func (c *cluster) kill(id string) {
	s := c.store(id)
	c.net.mu.Lock()
	site := c.net.sites[id]
	c.net.mu.Unlock()
	site.close()
	s.closed.Store(true)
	s.queue.close(ErrClosed, false)
	if err := s.snapshots.stop(within(c.t)); err != nil {
		c.t.Error(err)
	}
	if err := s.release(within(c.t)); err != nil {
		c.t.Error(err)
	}
	c.gone(id)
}

func (c *cluster) gone(id string) {
	c.net.mu.Lock()
	site := c.net.sites[id]
	c.net.mu.Unlock()
	site.close()
	c.mu.Lock()
	delete(c.stores, id)
	c.mu.Unlock()
}

func (c *cluster) stop() {
	c.net.heal()
	var wait sync.WaitGroup
	for _, s := range c.running() {
		wait.Go(func() { c.end(s) })
	}
	wait.Wait()
	for _, id := range c.ids {
		c.net.mu.Lock()
		site := c.net.sites[id]
		c.net.mu.Unlock()
		site.close()
	}
}

// end closes a replica that may be the last one, or have just come back from a disk that hung: what it has under way may get
// no outcome, but nothing of it is left behind.
func (c *cluster) end(s *Store) {
	if s.closed.Swap(true) {
		return
	}
	s.queue.close(ErrClosed, false)
	failed := s.Err() != nil
	if !failed {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = s.drain(ctx)
		cancel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*long)
	defer cancel()
	if err := errors.Join(s.snapshots.stop(ctx), s.release(ctx)); err != nil && !failed {
		c.t.Error(err)
	}
}

// until waits for a fact.
func (c *cluster) until(what string, fact func() bool) {
	c.t.Helper()
	for end := time.Now().Add(long); !fact(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// leader returns the one that leads and can propose.
func (c *cluster) leader() *Store {
	c.t.Helper()
	var leader *Store
	c.until("a leader", func() bool {
		leader = nil
		for _, s := range c.running() {
			if s.Role() == RoleLeader && s.batcher.ledTerm.Load() != 0 {
				leader = s
			}
		}
		return leader != nil
	})
	return leader
}

func (c *cluster) follower() *Store {
	c.t.Helper()
	l := c.leader()
	for _, s := range c.running() {
		if s != l {
			return s
		}
	}
	c.t.Fatal("no follower")
	return nil
}

// agree waits until all that run have applied the same, and compares their states.
func (c *cluster) agree() {
	c.t.Helper()
	l := c.leader()
	index, err := l.Barrier(within(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	c.until("all to have applied the same", func() bool {
		for _, s := range c.running() {
			if s.replica.applied.Load() < index || s.replica.applied.Load() != l.replica.applied.Load() {
				return false
			}
		}
		return true
	})
	want := digest(l)
	for _, s := range c.running() {
		if digest(s) != want {
			c.t.Errorf("the state of %s differs from that of %s", s.options.Replica, l.options.Replica)
		}
		checked(c.t, s)
	}
}

// runningAt opens a session of a replica, with a node of its own linked to it.
func runningAt(t testing.TB, s *Store, effects func([]fsm.Effect)) *Session {
	t.Helper()
	x, err := s.OpenSession(within(t), fsm.EdgeID(s.options.Replica), effects)
	if err != nil {
		t.Fatal(err)
	}
	o := must(t, x, &fsm.RegisterNode{Node: "n1", Instance: 7}, fsm.Registered)
	must(t, x, &fsm.NodeReady{Node: "n1", Generation: o.Generation}, fsm.Done)
	return x
}

func configure(t testing.TB, s *Store, config *fsm.ApplyConfig) {
	t.Helper()
	if o, err := s.Do(within(t), config); err != nil || o.Code != fsm.Applied {
		t.Fatalf("apply config: %v %v", o, err)
	}
}

func TestThreeReplicasFormACluster(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.follower(), world(2, 1000))
	var sessions []*Session
	for _, s := range c.running() {
		sessions = append(sessions, runningAt(t, s, nil))
	}
	for i := range 100 {
		x := sessions[i%3]
		o := must(t, x, admit(fmt.Sprint("r", i)), fsm.Granted)
		if i%2 == 0 {
			must(t, x, &fsm.Release{Lease: o.Grant.Lease}, fsm.Returned)
		}
	}
	c.agree()
	ids := map[string]bool{}
	for _, s := range c.running() {
		ids[s.Cluster()] = true
		if m := s.Members(); len(m) != 3 || !m[0].Voter || !m[2].Voter {
			t.Errorf("members %v", m)
		}
	}
	if len(ids) != 1 {
		t.Errorf("cluster ids %v", ids)
	}
}

// TestFirstStartWaitsForAll: two of three that are empty begin nothing; when the third comes, they do with what they had.
func TestFirstStartWaitsForAll(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var wait sync.WaitGroup
	for _, id := range []string{"e1", "e2"} {
		wait.Go(func() {
			site := c.net.open(t, id, c.at[id])
			defer site.close()
			_, err := Open(ctx, Options{
				Dir: c.dirs[id], Replica: id, Logger: testLogger(t),
				Cluster: &Cluster{Address: c.at[id], Peers: c.peers(), Network: site, Serve: site.serve},
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("two of three began a cluster: %v", err)
			}
		})
	}
	wait.Wait()
	c.start()
	c.agree()
}

func TestLeaderDies(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 1000))
	for round := range 2 {
		l := c.leader()
		f := c.follower()
		x := runningAt(t, f, nil)
		must(t, x, admit(fmt.Sprint("before", round)), fsm.Granted)
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() { must(t, x, admit(fmt.Sprint("during", round, "-", i)), fsm.Granted) })
		}
		id := l.options.Replica
		start := time.Now()
		c.kill(id)
		must(t, x, admit(fmt.Sprint("after", round)), fsm.Granted)
		t.Logf("round %d: granted %v after the kill", round, time.Since(start).Round(time.Millisecond))
		wait.Wait()
		if err := x.End(within(t), fsm.ReasonGoodbye); err != nil {
			t.Error(err)
		}
		c.startThese(id)
		c.agree()
	}
}

// TestMinorityRefuses: without a majority nothing is admitted, what is queued is refused before it has an effect.
func TestMinorityRefuses(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3")
	c.tune = func(_ string, o *Options) { o.Cluster.SessionTTL = time.Second }
	c.start()
	configure(t, c.leader(), world(1, 1000))
	f := c.follower()
	x := runningAt(t, f, nil)
	c.net.isolate(f.options.Replica, true)
	c.until("no leader", func() bool { return f.group.log.leader() == "" })
	_, err := x.Do(within(t), admit("lost"))
	if !errors.Is(err, ErrNoLeader) {
		t.Errorf("admitted without a majority: %v", err)
	}
	if _, err := x.Do(within(t), admit("lost2")); !errors.Is(err, ErrNoLeader) {
		t.Errorf("admitted without a majority: %v", err)
	}
	if _, err := f.Barrier(within(t)); err == nil {
		t.Error("read without a majority")
	}
	c.until("its session to be ended", func() bool {
		_, open := uint64(0), false
		c.leader().View(func(m *fsm.Machine) { _, open = m.CurrentSession(fsm.EdgeID(f.options.Replica)) })
		return !open
	})
	c.net.heal()
	c.until("it is told", func() bool {
		_, err := x.Do(within(t), admit("again"))
		return errors.Is(err, ErrSessionEnded)
	})
	c.agree()
}

func TestMembershipGrowsAndShrinks(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3")
	one, err := c.open("e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	x := running(t, one, world(1, 1000), nil)
	must(t, x, admit("r1"), fsm.Granted)
	for _, id := range []string{"e2", "e3"} {
		if _, err := c.open(id, c.peers()); err != nil {
			t.Fatal(err)
		}
		if err := one.AddMember(within(t), Member{ID: id, Address: c.at[id]}); err != nil {
			t.Fatal(err)
		}
		must(t, x, admit("with "+id), fsm.Granted)
	}
	c.agree()
	if err := one.RemoveMember(within(t), "e1"); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("the leader has to hand over first: %v", err)
	}
	must(t, x, admit("forwarded"), fsm.Granted)
	if err := c.leader().RemoveMember(within(t), "e1"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-one.Failed():
	case <-within(t).Done():
		t.Fatal("it does not know that it was removed")
	}
	if !errors.Is(one.Err(), ErrRemoved) {
		t.Error(one.Err())
	}
	c.close("e1")
	l, f := c.leader(), c.follower()
	if err := l.RemoveMember(within(t), f.options.Replica); err != nil {
		t.Fatal(err)
	}
	<-f.Failed()
	c.close(f.options.Replica)
	configure(t, l, world(1, 5))
	if m := l.Members(); len(m) != 1 {
		t.Errorf("members %v", m)
	}
}

// TestLostDiskMustNotVote: a replica that comes with an empty directory under a name that votes is refused.
func TestLostDiskMustNotVote(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 10))
	id := c.follower().options.Replica
	c.close(id)
	if err := os.RemoveAll(c.dirs[id]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.open(id, c.peers()); !errors.Is(err, ErrLostDisk) {
		t.Fatalf("it was taken in: %v", err)
	}
}

// TestRestartInAnyOrder: all stop; whichever comes back first, a majority goes on where all were.
func TestRestartInAnyOrder(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 100))
	x := runningAt(t, c.leader(), nil)
	for round, order := range [][]string{{"e1", "e2", "e3"}, {"e3", "e1", "e2"}} {
		must(t, x, admit(fmt.Sprint("r", round)), fsm.Granted)
		c.agree()
		for _, id := range c.ids {
			c.kill(id)
		}
		c.startThese(order[:2]...)
		configure(t, c.leader(), world(1, 101+round))
		c.startThese(order[2])
		c.agree()
		c.leader().View(func(m *fsm.Machine) {
			if _, ok := m.Request(fsm.RequestID(fmt.Sprint("r", round))); !ok {
				t.Errorf("round %d: what was admitted is lost", round)
			}
		})
		x = runningAt(t, c.follower(), nil)
	}
}

// TestCloseWithoutMajority: the last replicas to stop have commands that nobody can confirm, and stop all the same.
func TestCloseWithoutMajority(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 100))
	f := c.follower()
	x := runningAt(t, f, nil)
	for _, id := range c.ids {
		if id != f.options.Replica {
			c.kill(id)
		}
	}
	w := newWaiter()
	x.Propose(&fsm.Cancel{Request: "r"}, w)
	if err := f.Close(within(t)); err != nil {
		t.Error(err)
	}
	if _, err := w.wait(within(t)); err == nil {
		t.Error("an outcome without a majority")
	}
	c.gone(f.options.Replica)
}
