package storage

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// testNet joins replicas of one process by real TCP sockets. It can cut and pause each direction between two of them.
type testNet struct {
	mu    sync.Mutex
	sites map[string]*site   // by replica
	cut   map[[2]string]bool // from, to: nothing gets through
	conns map[*wire]struct{} // open
}

// wire is one end of a connection, seen from the replica at it.
type wire struct {
	net.Conn
	net      *testNet
	from, to string // from writes to to
}

// site is one replica's listener and what it answers with.
type site struct {
	net      *testNet
	id       string
	listener net.Listener
	raft     chan net.Conn
	done     chan struct{}
	once     sync.Once
	wait     sync.WaitGroup

	mu    sync.Mutex
	store *Store
}

func newTestNet() *testNet {
	return &testNet{sites: map[string]*site{}, cut: map[[2]string]bool{}, conns: map[*wire]struct{}{}}
}

var errCut = errors.New("cut off by the test")

// open gives a replica a listener; address "" = a new one.
func (n *testNet) open(t testing.TB, id, address string) *site {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	var l net.Listener
	var err error
	for range 100 { // the process that had it before may be just closing it
		if l, err = net.Listen("tcp", address); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &site{net: n, id: id, listener: l, raft: make(chan net.Conn, 64), done: make(chan struct{})}
	n.mu.Lock()
	n.sites[id] = s
	n.mu.Unlock()
	s.wait.Go(s.accept)
	return s
}

func (s *site) address() string { return s.listener.Addr().String() }

func (s *site) serve(store *Store) {
	s.mu.Lock()
	s.store = store
	s.mu.Unlock()
}

func (s *site) served() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store
}

// close ends everything of the site, at once.
func (s *site) close() {
	s.once.Do(func() { close(s.done) })
	_ = s.listener.Close()
	s.net.mu.Lock()
	for c := range s.net.conns {
		if c.from == s.id || c.to == s.id {
			_ = c.Conn.Close()
		}
	}
	s.net.mu.Unlock()
	s.wait.Wait()
}

// Accept, Close and Addr make a site the listener of raft's connections.
func (s *site) Accept() (net.Conn, error) {
	select {
	case c := <-s.raft:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *site) Close() error   { s.once.Do(func() { close(s.done) }); return nil }
func (s *site) Addr() net.Addr { return s.listener.Addr() }

// set cuts (or heals) the way from one replica to another; what is under way is lost, connections break.
func (n *testNet) set(from, to string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{from, to}] = cut
}

// isolate cuts a replica off, both ways.
func (n *testNet) isolate(id string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other := range n.sites {
		n.cut[[2]string{id, other}], n.cut[[2]string{other, id}] = cut, cut
	}
}

func (n *testNet) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
}

func (n *testNet) isCut(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[[2]string{from, to}]
}

// Write loses what is cut: a black hole, not an error, as on a real network.
func (c *wire) Write(b []byte) (int, error) {
	if c.net.isCut(c.from, c.to) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read gives nothing of what was lost: after a hole in the stream the connection is of no use any more.
func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.net.isCut(c.to, c.from) {
		return 0, errCut
	}
	return n, err
}

func (c *wire) Close() error {
	c.net.mu.Lock()
	delete(c.net.conns, c)
	c.net.mu.Unlock()
	return c.Conn.Close()
}

func (n *testNet) wrap(c net.Conn, from, to string) *wire {
	x := &wire{Conn: c, net: n, from: from, to: to}
	n.mu.Lock()
	n.conns[x] = struct{}{}
	n.mu.Unlock()
	return x
}

// A connection begins with its kind and the caller's id.
const (
	kindRaft = iota + 1
	kindLane
	kindCall
)

func (s *site) dial(ctx context.Context, kind byte, to Member) (net.Conn, error) {
	if s.net.isCut(s.id, to.ID) || s.net.isCut(to.ID, s.id) {
		return nil, errCut
	}
	select {
	case <-s.done:
		return nil, net.ErrClosed
	default:
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, err
	}
	x := s.net.wrap(c, s.id, to.ID)
	if _, err := x.Write(append([]byte{kind, byte(len(s.id)), byte(len(to.ID))}, s.id+to.ID...)); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

func (s *site) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.wait.Go(func() { s.admit(c) })
	}
}

func (s *site) admit(c net.Conn) {
	head := make([]byte, 3)
	if _, err := io.ReadFull(c, head); err != nil {
		_ = c.Close()
		return
	}
	names := make([]byte, int(head[1])+int(head[2]))
	if _, err := io.ReadFull(c, names); err != nil || string(names[head[1]:]) != s.id {
		_ = c.Close()
		return
	}
	x := s.net.wrap(c, s.id, string(names[:head[1]]))
	switch head[0] {
	case kindRaft:
		select {
		case s.raft <- x:
		case <-s.done:
			_ = x.Close()
		}
	case kindLane:
		s.receive(x)
	case kindCall:
		s.answer(x)
	}
}

func writeFrame(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// receive is the leader's end of a lane.
func (s *site) receive(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		b, err := readFrame(r)
		if err != nil {
			return
		}
		v := VerdictNotLeader
		if store := s.served(); store != nil {
			v = store.Forwarded(b)
		}
		if _, err := c.Write([]byte{byte(v)}); err != nil {
			return
		}
	}
}

// answer runs a call: the caller's function is run here, since both are of one process; only that it gets through is
// the network's.
func (s *site) answer(c net.Conn) {
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte{1})
	_, _ = io.Copy(io.Discard, c)
}

// Raft implements Network.
func (s *site) Raft() net.Listener { return s }

// DialRaft implements Network.
func (s *site) DialRaft(ctx context.Context, to Member) (net.Conn, error) {
	return s.dial(ctx, kindRaft, to)
}

type tcpLane struct {
	net.Conn
	r *bufio.Reader
}

func (l *tcpLane) Send(b []byte) error { return writeFrame(l.Conn, b) }

func (l *tcpLane) Recv() (Verdict, error) {
	b, err := l.r.ReadByte()
	return Verdict(b), err
}

// Forward implements Network.
func (s *site) Forward(ctx context.Context, to Member) (Lane, error) {
	c, err := s.dial(ctx, kindLane, to)
	if err != nil {
		return nil, err
	}
	return &tcpLane{c, bufio.NewReader(c)}, nil
}

// reach returns the store at a replica if a call gets there and back.
func (s *site) reach(ctx context.Context, to Member) (*Store, error) {
	c, err := s.dial(ctx, kindCall, to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if d, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(d)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return nil, err
	}
	s.net.mu.Lock()
	other := s.net.sites[to.ID]
	s.net.mu.Unlock()
	if other == nil || other.served() == nil {
		return nil, fmt.Errorf("%s does not answer yet", to.ID)
	}
	return other.served(), nil
}

// Standing implements Network.
func (s *site) Standing(ctx context.Context, to Member) (Standing, error) {
	other, err := s.reach(ctx, to)
	if err != nil {
		return Standing{}, err
	}
	return other.Standing(), nil
}

// ReadIndex implements Network.
func (s *site) ReadIndex(ctx context.Context, to Member) (uint64, uint64, error) {
	other, err := s.reach(ctx, to)
	if err != nil {
		return 0, 0, err
	}
	return other.ReadIndex(ctx)
}

// Join implements Network.
func (s *site) Join(ctx context.Context, to, self Member, _ string) error {
	other, err := s.reach(ctx, to)
	if err != nil {
		return err
	}
	return other.Join(ctx, self)
}

// Change implements Network.
func (s *site) Change(ctx context.Context, to Member, c Change) error {
	other, err := s.reach(ctx, to)
	if err != nil {
		return errors.Join(ErrNoAnswer, err)
	}
	return other.Changed(ctx, c)
}

// Digest implements Network.
func (s *site) Digest(ctx context.Context, to Member, mark Mark) (uint64, [32]byte, error) {
	other, err := s.reach(ctx, to)
	if err != nil {
		return 0, [32]byte{}, err
	}
	return other.Digest(ctx, mark)
}
