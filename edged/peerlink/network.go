package peerlink

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"iop/edged/strangers"
)

// Network is this replica's end of all links to the others. What it sends works from New on; what comes in is taken
// while Run runs, and answered once a Host is attached.
type Network struct {
	o       Options
	started time.Time
	raft    *raftListener
	faults  strangers.Complaints
	host    atomic.Pointer[Host]
	over    sync.WaitGroup // goroutines of doors and peers

	mu     sync.Mutex
	peers  map[string]*peer // by id
	rafts  map[*raftConn]struct{}
	closed bool
}

// New returns a Network. It fails only if a required option is missing.
func New(o Options) (*Network, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	n := &Network{o: o, started: time.Now(), peers: map[string]*peer{}, rafts: map[*raftConn]struct{}{}}
	n.raft = newRaftListener(o.Listener.Addr())
	return n, nil
}

// Attach gives the host that answers from now on.
func (n *Network) Attach(h Host) { n.host.Store(&h) }

func (n *Network) hosted() Host {
	if h := n.host.Load(); h != nil {
		return *h
	}
	return nil
}

func (n *Network) cluster() string {
	if h := n.hosted(); h != nil {
		return h.Cluster()
	}
	return ""
}

// Run takes connections until ctx ends, then ends every connection, also those that raft has, and waits for all that
// was started. It returns nil after ctx ended, else why the listener failed.
func (n *Network) Run(ctx context.Context) error {
	door := newDoor(n)
	server := newServer(n)
	n.over.Go(func() { _ = server.Serve(door) })
	stop := context.AfterFunc(ctx, door.shut)
	defer stop()

	err := door.accept()
	door.shut()
	n.close()
	server.Stop()
	n.over.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("cluster listener: %w", err)
}

// close ends what goes out, and raft's connections.
func (n *Network) close() {
	n.mu.Lock()
	n.closed = true
	for id, p := range n.peers {
		p.end()
		delete(n.peers, id)
	}
	rafts := n.rafts
	n.rafts = nil
	n.mu.Unlock()
	_ = n.raft.Close()
	for c := range rafts {
		_ = c.Conn.Close()
	}
}

// Raft returns the listener of raft's connections that others opened.
func (n *Network) Raft() net.Listener { return n.raft }

// Addr is where the other replicas reach this one, as listened on.
func (n *Network) Addr() net.Addr { return n.o.Listener.Addr() }

// now is a monotonic time in nanoseconds.
func (n *Network) now() int64 { return int64(time.Since(n.started)) }
