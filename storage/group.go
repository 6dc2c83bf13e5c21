package storage

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"iop/fsm"
)

// group is what a store has besides if it can be one of several replicas: whom it knows, and three goroutines. The
// forwarder brings commands to the leader (forward.go), keep counts who is silent (lost.go), and tend looks after the
// membership (here).
type group struct {
	store   *Store
	options Cluster
	logger  *slog.Logger
	book    *book
	peers   *peers
	forward *forwarder
	reads   reads

	log     *raftLog // set before keep runs
	running atomic.Pointer[raftLog]
	kick    chan struct{}
	ctx     context.Context // of everything asked of others; ends with the store
	quit    context.CancelFunc
	tasks   sync.WaitGroup

	promised atomic.Bool         // Serve was called
	silences map[string]*silence // belongs to keep
	looked   fsm.Time            // cluster time when keep looked last
	unknown  int                 // how often a leader said that it does not know this replica
	askedAt  time.Time           // when tend asked the others last
	contacts contacts            // when each was heard of last
	untaken  refrain             // what was said of not being taken in
}

// What a replica is refused for.
var (
	// ErrNotLeader: only the leader can do that; the error names it.
	ErrNotLeader = errors.New("not the leader")
	// ErrRemoved: the cluster goes on without this replica.
	ErrRemoved = errors.New("this replica was removed from its cluster")
	// ErrNoAnswer: the replica asked, which is taken to be the leader, could not be reached.
	ErrNoAnswer = errors.New("the replica can't be reached")
	// ErrNoLeader: there is no leader, as far as this replica can see; the command had no effect. Try again later.
	ErrNoLeader = errors.New("no leader")
)

const (
	sessionTTL = 3 * time.Second
	keepEach   = 100 * time.Millisecond
	// leaderless is for how long commands wait for a leader before they are refused.
	leaderless = 2 * time.Second
)

func newGroup(s *Store, o Cluster) *group {
	if o.SessionTTL <= 0 {
		o.SessionTTL = sessionTTL
	}
	if o.LevelMax == 0 || o.LevelMax > levelMax {
		o.LevelMax = levelMax
	}
	g := &group{store: s, options: o, logger: s.logger, peers: newPeers(s.options.Replica), kick: make(chan struct{}, 1), silences: map[string]*silence{}}
	g.book = &book{peers: append([]Member(nil), o.Peers...)}
	g.book.expect(Member{ID: s.options.Replica, Address: o.Address})
	g.ctx, g.quit = context.WithCancel(context.Background())
	g.forward = newForwarder(g)
	return g
}

// others returns the peers of the configuration but this replica.
func (g *group) others() []Member {
	var out []Member
	for _, m := range g.options.Peers {
		if m.ID != g.store.options.Replica {
			out = append(out, m)
		}
	}
	return out
}

func (g *group) nudge() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// start begins taking part; raft runs.
func (g *group) start(l *raftLog) {
	g.log = l
	g.running.Store(l)
	g.peers.keep(g.book.all())
	g.tasks.Go(g.keep)
	g.tasks.Go(g.tend)
	g.tasks.Go(g.notice)
	g.tasks.Go(g.forward.run)
}

// stop ends the group's goroutines; what they wait for is given up. Raft has stopped, unless it hangs.
func (g *group) stop(stopped bool) {
	g.quit()
	if !stopped {
		return
	}
	g.tasks.Wait()
	g.reads.group.Wait()
	g.peers.stop()
	if d := g.store.replica.digests; d != nil {
		d.group.Wait()
	}
}

// handOverMax bounds handing leadership over on the way out.
const handOverMax = 3 * time.Second

// handOver gives leadership to another replica, if there is one.
func (g *group) handOver(ctx context.Context) {
	if g.log == nil || !g.log.leading() {
		return
	}
	voters := 0
	for _, m := range g.book.all() {
		if m.Voter {
			voters++
		}
	}
	if voters < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverMax)
	defer cancel()
	if err := g.await(ctx, "hand leadership over", g.log.raft.LeadershipTransfer()); err != nil {
		g.logger.Warn("leadership could not be handed over; the others elect a leader", "error", err)
	}
}

// keep counts for how long replicas are silent, until the store ends. It waits for nobody.
func (g *group) keep() {
	ticker := time.NewTicker(keepEach)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.store.failed:
			return
		case <-g.kick:
		case <-ticker.C:
		}
		if g.book.learn(g.log.raft.GetConfiguration().Configuration()) {
			g.peers.keep(g.book.all())
		}
		now := time.Now()
		step := min(now.Sub(last), 2*keepEach) // a process that was stopped has not heard of anybody for no time
		last = now
		g.hear(now)
		if g.leading() {
			g.endLost(g.book.logged(), step)
		} else {
			g.forgive()
		}
	}
}

// leading tells whether this replica leads, and its term has begun.
func (g *group) leading() bool { return g.store.batcher.ledTerm.Load() != 0 && g.log.leading() }

// tend looks after the membership until the store ends; it asks the others, and waits for them.
func (g *group) tend() {
	ticker := time.NewTicker(keepEach)
	defer ticker.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.store.failed:
			return
		case <-ticker.C:
		}
		if g.leading() {
			g.lead()
		} else {
			g.follow()
		}
	}
}

// lead is what the leader does.
func (g *group) lead() {
	own := g.store.options.Replica
	logged := g.book.logged()
	i := find(logged, own)
	if i < 0 {
		return
	}
	if logged[i].Address != g.options.Address {
		g.change("correct the address of this replica", g.log.raft.AddVoter(raft.ServerID(own), raft.ServerAddress(g.options.Address), 0, 0))
		return
	}
	for _, m := range logged {
		if !m.Voter && g.caughtUp(m) {
			g.logger.Info("replica has caught up and votes from now on", "replica", m.ID)
			g.change("promote replica "+m.ID, g.log.raft.AddVoter(raft.ServerID(m.ID), raft.ServerAddress(m.Address), 0, 0))
			return
		}
	}
	g.raiseLevel(logged)
	g.proposeNext()
}

func (g *group) change(what string, f raft.IndexFuture) {
	if err := f.Error(); err != nil {
		g.logger.Warn(what, "error", err)
	}
}

// caughtUpBy is how far behind a replica may be that is given a vote: it has less than that to take before it can
// confirm an entry.
const caughtUpBy = 200

func (g *group) caughtUp(m Member) bool {
	ctx, cancel := context.WithTimeout(g.ctx, transportTimeout)
	defer cancel()
	s, err := g.options.Network.Standing(ctx, m)
	return err == nil && s.Cluster == g.store.Cluster() && s.ID == m.ID && s.Applied > 0 && s.Applied+caughtUpBy >= g.store.replica.applied.Load()
}

// proposeCheck logs the leader's digest.
func (s *Store) proposeCheck(c fsm.DigestCheck) {
	if s.batcher.ledTerm.Load() != 0 && s.replica.level.Load() >= fsm.LevelOf(&c) {
		s.put(s.plain, &c, nobody{}, true)
	}
}

// endOwn ends the sessions of this process when the state has jumped: what happened to their requests meanwhile was
// never told. Their edge opens a new one, as after a loss of the majority.
func (g *group) endOwn() {
	if g.running.Load() == nil {
		return // a start: nobody has a session yet
	}
	edge := fsm.EdgeID(g.store.options.Replica)
	var id fsm.SessionID
	var open bool
	g.store.View(func(m *fsm.Machine) { id, open = m.CurrentSession(edge) })
	if open {
		g.logger.Warn("the state came from the leader as a whole: this replica's session is ended", "session", uint64(id))
		g.store.put(g.store.plain, g.endOf(edge, id, 0), nobody{}, true)
	}
}

func (s *Store) levelMax() uint32 {
	if s.group != nil {
		return s.group.options.LevelMax
	}
	return levelMax
}
