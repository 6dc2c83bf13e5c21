package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Times of a cluster of replicas. An election takes one to two of electionTime; a leader that can't reach a majority
// for leaseTime steps down. A replica that may get others has them too: raft can't change its lease while it runs.
const (
	electionTime     = 500 * time.Millisecond
	leaseTime        = 300 * time.Millisecond
	transportTimeout = 2 * time.Second
	transportConns   = 4 // kept per peer: entries, heartbeats, commits, votes
	// stallTime is how long a leader's disk may take a write before it is silent: raft would go on telling the others that
	// it leads, while it can log nothing.
	stallTime = 2 * electionTime
)

var errStalled = errors.New("this replica's disk stalls: it must not lead")

// transport is raft's over the Network. It also sees which peers answer (peers.go has what the Network is).
type transport struct {
	*raft.NetworkTransport
	peers *peers
	guard *guard
	vault *vault
}

func newTransport(g *group, p *raftParts) *transport {
	stream := &stream{network: g.options.Network, book: g.book, self: raft.ServerAddress(g.options.Address), open: map[net.Conn]struct{}{}}
	return &transport{peers: g.peers, guard: g.store.guard, vault: g.store.vault, NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: g.book, Stream: stream, MaxPool: transportConns,
		MaxRPCsInFlight: 1, // with more, a follower whose disk stalled may never be replicated to again
		Timeout:         transportTimeout, Logger: newPeerHclog(p.logger),
	})}
}

// AppendEntries notes that the peer answered, and how far its log is that of the leader. It sends nothing, heartbeats
// included, while the disk stalls.
func (t *transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if t.guard.stalled(stallTime) {
		return errStalled
	}
	err := t.NetworkTransport.AppendEntries(id, to, args, resp)
	if err == nil {
		t.peers.answered(string(id), args, resp)
	}
	return err
}

// InstallSnapshot sends a snapshot, with the stored responses behind it, and notes that the peer answered.
func (t *transport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	stored, err := t.vault.copy(0)
	if err != nil {
		return err
	}
	if stored != nil {
		with := *args
		with.Size += stored.size
		args = &with
		var stop func()
		data, stop = stored.follow(data)
		defer func() {
			stop()
			_ = stored.close() // it only reads
		}()
	}
	err = t.NetworkTransport.InstallSnapshot(id, to, args, resp, data)
	if err == nil {
		t.peers.heard(string(id))
	}
	return err
}

// stream is the Network as raft wants it. It keeps what is open, because raft leaves connections to themselves when it
// shuts down.
type stream struct {
	network Network
	book    *book
	self    raft.ServerAddress

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// Dial opens a connection to the member at an address.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to, ok := s.book.at(string(address))
	if !ok {
		return nil, fmt.Errorf("no member of the cluster is at %s", address)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := s.network.DialRaft(ctx, to)
	if err != nil {
		return nil, err
	}
	return s.track(c)
}

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.network.Raft().Accept()
	if err != nil {
		return nil, err
	}
	return s.track(c)
}

func (s *stream) track(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	s.open[c] = struct{}{}
	return &tracked{Conn: c, of: s}, nil
}

// Close ends listening and every connection.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		_ = c.Close()
	}
	clear(s.open)
	s.mu.Unlock()
	return s.network.Raft().Close()
}

// Addr returns where this replica is reached.
func (s *stream) Addr() net.Addr { return address(s.self) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

type tracked struct {
	net.Conn
	of *stream
}

func (c *tracked) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
