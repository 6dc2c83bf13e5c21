package nodelink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"iop/edged/strangers"
	"iop/fsm"
	"iop/proto/nodepb"
)

// Links are all links of this edge.
type Links struct {
	o       Options
	started time.Time
	over    sync.WaitGroup // goroutines that may outlive their gRPC handler
	buffers bufferPool

	fenceTimeout atomic.Int64 // ns

	mu      sync.Mutex
	links   map[fsm.NodeID]*link          // in being, one per node
	old     map[*link]struct{}            // transports of a session that ended; they carry what still runs
	last    map[fsm.NodeID]fsm.Generation // newest registered here
	fenced  map[fsm.NodeID]fsm.Generation // newest that the machine fenced
	regs    map[fsm.NodeID]chan struct{}  // held during a node's registration
	leaving map[*link]struct{}            // lost, their end not yet commanded
	closing bool                          // Goodbye was said
	faults  strangers.Complaints          // of who was turned away
	news    chan struct{}                 // closed and replaced when a node confirmed a configuration or a link came or went
}

// New returns Links that Run brings to life. It fails only if a required option is missing.
func New(o Options) (*Links, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	l := &Links{
		o:       o,
		started: time.Now(),
		links:   map[fsm.NodeID]*link{},
		old:     map[*link]struct{}{},
		last:    map[fsm.NodeID]fsm.Generation{},
		fenced:  map[fsm.NodeID]fsm.Generation{},
		regs:    map[fsm.NodeID]chan struct{}{},
		leaving: map[*link]struct{}{},
		news:    make(chan struct{}),
	}
	l.SetFenceTimeout(o.FenceTimeout)
	return l, nil
}

// shutdownGrace is how long the last commands may take after Run's context ended.
const shutdownGrace = 2 * time.Second

// Run accepts nodes until ctx ends, then closes every link and waits for all that it started. It returns nil after ctx
// ended, else why the listener failed.
func (l *Links) Run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	door := newDoor(l)
	server := newServer(func(s stream) error { return l.serve(life, s) }, l.o)
	l.over.Go(func() { _ = server.Serve(door) })
	stop := context.AfterFunc(ctx, door.shut)
	defer stop()

	err := door.accept()
	door.shut()
	l.mu.Lock()
	l.closing = true
	for k := range l.being() {
		k.lose(fsm.ReasonGoodbye, true, false)
	}
	l.mu.Unlock()
	timer := time.AfterFunc(shutdownGrace, end)
	defer timer.Stop()
	server.Stop()
	l.over.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("node listener: %w", err)
}

// Goodbye ends all links in an orderly way: nodes are told, the links are fenced, nothing new is accepted. It returns
// when that is done or ctx ends. Call it when no exchange is wanted any more.
func (l *Links) Goodbye(ctx context.Context) {
	l.mu.Lock()
	l.closing = true
	var waits []*link
	for k := range l.being() {
		k.dismiss()
		waits = append(waits, k)
	}
	for k := range l.leaving {
		waits = append(waits, k)
	}
	l.mu.Unlock()
	for _, k := range waits {
		select {
		case <-k.commanded:
		case <-ctx.Done():
			return
		}
	}
}

// find returns the link in being of that generation.
func (l *Links) find(node fsm.NodeID, generation fsm.Generation) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.links[node]; k != nil && k.generation == generation {
		return k
	}
	return nil
}

// insert makes k the node's link. A link that it supersedes is lost without a command, because the registration was one.
func (l *Links) insert(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.links[k.node]; old != nil {
		old.lose(fsm.ReasonSuperseded, false, false)
	}
	l.links[k.node] = k
	l.leaving[k] = struct{}{}
	l.last[k.node] = max(l.last[k.node], k.generation)
	l.catchUp(k)
	l.tell()
	if k.generation <= l.fenced[k.node] {
		k.lose(fsm.ReasonLinkLost, false, false)
	} else if l.closing {
		k.lose(fsm.ReasonGoodbye, true, false)
	}
}

// remove takes k out, if it is still the node's link.
func (l *Links) remove(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.links[k.node] == k {
		delete(l.links, k.node)
	}
	delete(l.old, k)
	l.tell()
}

// forget ends the wait for k's last command.
func (l *Links) forget(k *link) {
	l.mu.Lock()
	delete(l.leaving, k)
	l.mu.Unlock()
	close(k.commanded)
}

// stopping tells whether Goodbye was said.
func (l *Links) stopping() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing
}

// stream is the edge's end of one gRPC call.
type stream = grpc.BidiStreamingServer[nodepb.NodeFrame, nodepb.EdgeFrame]

var errLost = errors.New("link lost")
