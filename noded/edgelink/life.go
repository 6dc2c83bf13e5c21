package edgelink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"iop/proto/nodepb"
)

// queueMax bounds the frames that wait to be sent. An edge that lets it fill up has lost the link.
const queueMax = 4096

// stream is the node's end of the one gRPC call.
type stream = grpc.BidiStreamingClient[nodepb.NodeFrame, nodepb.EdgeFrame]

// life is one life of a link: from Accepted to its loss.
type life struct {
	l          *Link
	generation uint64
	secret     []byte
	bodyMax    int64
	interval   time.Duration
	silenceMax time.Duration
	began      time.Time

	queue    chan *nodepb.NodeFrame
	refresh  chan *nodepb.NodeConfigRefreshRequest // has one place: only the newest counts
	dials    chan struct{}                         // one item per data connection that is being dialled
	dead     chan struct{}                         // closed when the life is over
	beats    atomic.Uint64
	seen     atomic.Uint64 // newest heartbeat of the edge
	heardAt  atomic.Int64  // since began, ns
	stopping atomic.Bool   // takes no new run
	active   atomic.Int64  // runs that are served, until their outcome is sent
	idle     chan struct{} // has one place: a retired life has become spent
	retired  chan struct{} // closed when the link is only there for what still runs
	named    []uint64      // the leases that the registration named
	cluster  string        // id
	looks    chan struct{} // one item per look that is being answered
	looking  sync.WaitGroup

	mu    sync.Mutex
	held  uint64        // newest configuration of the edge that was applied, or refused
	moved chan struct{} // closed and replaced when held rises
	err   error         // why it is over
	conns map[net.Conn]struct{}
	open  int // data connections, and those being dialled
}

var (
	errSilent   = errors.New("the edge is silent")
	errUnread   = errors.New("the edge does not read")
	errNoAnswer = errors.New("the edge did not answer the registration in time")
)

// once is one life of the link, from dialling to its end, or to its retirement: then it lives on beside the next one. It
// says how long the link was up and why it ended.
func (l *Link) once(ctx context.Context) (up time.Duration, err error) {
	cc, err := l.control()
	if err != nil {
		return 0, fmt.Errorf("prepare the link: %w", err)
	}
	call, cancel := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx, for the goodbye
	hangUp := func() { cancel(); _ = cc.Close() }
	st, accepted, err := l.register(ctx, call, cancel, cc)
	if err != nil {
		hangUp()
		return 0, err
	}
	s := newLife(l, accepted)
	s.named, s.cluster = l.named, accepted.Cluster
	if err := l.o.Runs.open(accepted.Cluster, accepted.Edge, s.generation); err != nil {
		hangUp()
		return 0, err
	}
	l.edge, l.fault = accepted.Edge, fault{}
	l.o.Runs.hold(l.edge, l)
	defer l.o.Runs.letGo(l.edge, l)
	l.o.Logger.Info("accepted by the edge", "edge", l.o.Address, "edge_id", accepted.Edge, "generation", s.generation)
	l.o.Observe(State{Address: l.o.Address, Phase: PhasePending, Generation: s.generation})

	over := make(chan struct{})
	l.serving.Go(func() {
		defer close(over)
		s.live(ctx, call, hangUp, st, accepted)
	})
	select {
	case <-over:
		return s.age(), s.cause()
	case <-s.retired:
		l.down(s)
		return s.age(), errRetired
	}
}

// live runs the life to its end.
func (s *life) live(ctx, call context.Context, hangUp func(), st stream, accepted *nodepb.Accepted) {
	var work sync.WaitGroup
	work.Go(func() { s.deliver(st) })
	work.Go(func() { s.receive(call, st) })
	work.Go(func() { s.configure(call, accepted) })
	s.watch(ctx)

	s.finish(nil)
	s.l.down(s)
	s.l.o.Runs.lost(s.generation)
	s.shutData()
	hangUp()
	work.Wait()
	s.looking.Wait()
}

func newLife(l *Link, a *nodepb.Accepted) *life {
	s := &life{
		l: l, generation: a.Generation, secret: a.Secret, bodyMax: int64(a.BodyMaxBytes),
		interval: max(time.Millisecond, time.Duration(a.HeartbeatIntervalMs)*time.Millisecond),
		began:    time.Now(),
		queue:    make(chan *nodepb.NodeFrame, queueMax), refresh: make(chan *nodepb.NodeConfigRefreshRequest, 1),
		idle: make(chan struct{}, 1), retired: make(chan struct{}),
		dead: make(chan struct{}), dials: make(chan struct{}, dialsMax), looks: make(chan struct{}, looksMax), moved: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	s.silenceMax = time.Duration(max(1, a.HeartbeatMissed)) * s.interval
	return s
}

// configure applies the first configuration, ends what is not counted, opens spare connections, reports ready, and then
// applies what the edge pushes.
func (s *life) configure(ctx context.Context, a *nodepb.Accepted) {
	if err := s.l.o.Hands.Configure(ctx, a.Revision, a.Payload); err != nil {
		s.finish(fmt.Errorf("apply configuration %d: %w", a.Revision, err))
		return
	}
	s.holds(a.Revision)
	if err := s.l.o.Runs.settle(ctx, s.named, a.Counted); err != nil {
		s.finish(err)
		return
	}
	s.need(ctx, int(a.SpareConnections))
	s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Ready{Ready: &nodepb.Ready{Generation: s.generation, Revision: a.Revision}}})
	if s.l.up(s) {
		s.l.o.Observe(State{Address: s.l.o.Address, Phase: PhaseReady, Generation: s.generation})
	}
	for {
		select {
		case <-s.dead:
			return
		case r := <-s.refresh:
			ack := &nodepb.RefreshAck{Revision: r.Revision}
			if err := s.l.o.Hands.Configure(ctx, r.Revision, r.Payload); err != nil {
				ack.Error = err.Error()
				s.l.o.Logger.Error("a pushed configuration can't be applied, the old one stays", "revision", r.Revision, "error", err)
			}
			s.holds(r.Revision)
			s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RefreshAck{RefreshAck: ack}})
		}
	}
}

// watch beats and listens for silence until the life is over. When ctx ends it leads to the orderly end: the edge is
// told, sends nothing new, and closes the link when the running runs have ended; after StopWait they are canceled, and
// an edge that does not close after that has the link closed.
func (s *life) watch(ctx context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	bound := time.NewTimer(time.Hour)
	bound.Stop()
	defer bound.Stop()
	last := s.age()
	stop := ctx.Done()
	news := s.l.o.Runs.news()
	canceled := false
	retired := s.retired
	for {
		select {
		case <-s.dead:
			return
		case <-stop:
			stop = nil
			s.stopping.Store(true)
			s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Goodbye{Goodbye: &nodepb.Goodbye{Reason: "the node stops"}}})
			bound.Reset(s.l.o.StopWait)
		case <-bound.C:
			if canceled || s.spent() {
				s.finish(nil)
				continue
			}
			canceled = true
			s.l.o.Runs.stop(s.generation)
			bound.Reset(min(s.silenceMax, s.l.o.DialTimeout))
		case <-retired:
			retired = nil
			s.rest(bound)
		case <-s.idle:
			s.rest(bound)
		case <-news:
			news = s.l.o.Runs.news()
			s.report()
		case <-ticker.C:
			late := s.age() - last - s.interval
			last = s.age()
			// This process stood still itself: what the edge sent meanwhile has not been read yet.
			if late < s.interval && s.age()-time.Duration(s.heardAt.Load()) > s.silenceMax {
				s.finish(fmt.Errorf("%w for %s", errSilent, s.silenceMax))
				continue
			}
			s.beat(false)
			s.report()
		}
	}
}

func (s *life) age() time.Duration { return time.Since(s.began) }

func (s *life) beat(ping bool) {
	s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Heartbeat{Heartbeat: &nodepb.Heartbeat{
		N: s.beats.Add(1), AgeNs: uint64(s.age()), Answers: s.seen.Load(), Ping: ping,
	}}})
}

// report tells what still runs of generations that are gone.
func (s *life) report() {
	for _, r := range s.l.o.Runs.reports(s.generation) {
		s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_LinkReport{LinkReport: r}})
	}
}

// send queues a frame. A full queue ends the life.
func (s *life) send(f *nodepb.NodeFrame) {
	select {
	case s.queue <- f:
	default:
		s.finish(errUnread)
	}
}

// finish ends the life, once; err says why.
func (s *life) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.dead:
	default:
		s.err = err
		close(s.dead)
	}
}

func (s *life) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
