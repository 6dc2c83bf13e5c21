package peerlink

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// relay stands between two replicas and breaks when told.
type relay struct {
	net.Listener
	to   string
	held atomic.Bool // nothing passes any more, and nobody is told

	mu    sync.Mutex
	conns []net.Conn
	over  sync.WaitGroup
}

func newRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to}
	r.over.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.carry(c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
		r.over.Wait()
	})
	return r
}

func (r *relay) carry(near net.Conn) {
	far, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = near.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, near, far)
	r.mu.Unlock()
	r.over.Go(func() { r.pump(near, far) })
	r.over.Go(func() { r.pump(far, near) })
}

func (r *relay) pump(from, to net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			if !r.held.Load() {
				_ = to.Close()
			}
			return
		}
		if r.held.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// 1,000 batches through connections that break: resent in order from the first without a verdict, everything arrives in
// order, and what a verdict called accepted was.
func TestBatchesInOrderAcrossReconnects(t *testing.T) {
	both(t, func(t *testing.T, options func(string) Options) {
		a, b := start(t, options("a")), start(t, options("b"))
		r := newRelay(t, b.Addr().String())
		to := Member{ID: "b", Address: r.Addr().String()}
		const all = 1000
		accepted, lanes := 0, 0
		for accepted < all {
			lane, err := a.Forward(t.Context(), to)
			if err != nil {
				time.Sleep(20 * time.Millisecond) // the backoff
				continue
			}
			lanes++
			var over sync.WaitGroup
			first := accepted
			over.Go(func() {
				for i := first; i < all; i++ {
					if lane.Send([]byte(strconv.Itoa(i))) != nil {
						return
					}
				}
			})
			for accepted < all {
				v, err := lane.Recv()
				if err != nil {
					break
				}
				if v != VerdictAccepted {
					t.Fatalf("verdict %v", v)
				}
				accepted++
				if accepted%300 == 0 {
					r.cut()
				}
			}
			_ = lane.Close()
			over.Wait()
		}
		if lanes < 3 {
			t.Errorf("%d lanes: the connection did not break", lanes)
		}
		next := 0 // repetitions apart, the order is that of the sender
		for _, s := range b.host.taken() {
			i, err := strconv.Atoi(s)
			if err != nil || i > next {
				t.Fatalf("%q where at most %d was due: a gap", s, next)
			}
			if i == next {
				next++
			}
		}
		if next != all {
			t.Errorf("%d arrived", next)
		}
	})
}

func TestVerdictsAreThoseOfTheirBatches(t *testing.T) {
	a, b := start(t, Options{ID: "a"}), start(t, Options{ID: "b"})
	b.host.verdict = func(s string) Verdict { return Verdict(s[0] - '0') }
	lane, err := a.Forward(t.Context(), b.member())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lane.Close() }()
	const sent = "123312"
	for _, c := range sent {
		if err := lane.Send([]byte(string(c))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range sent {
		if v, err := lane.Recv(); err != nil || v != Verdict(c-'0') {
			t.Errorf("%v, %v; want %c", v, err, c)
		}
	}
	if got := fmt.Sprint(b.host.taken()); got != "[1 1]" {
		t.Error(got)
	}
}

// The window bounds what is under way; the sender waits, and goes on with the verdicts.
func TestWindow(t *testing.T) {
	a, b := start(t, Options{ID: "a", Window: 4}), start(t, Options{ID: "b"})
	b.host.stuck = make(chan struct{})
	lane, err := a.Forward(t.Context(), b.member())
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	var over sync.WaitGroup
	over.Go(func() {
		for i := range 20 {
			if lane.Send([]byte{byte(i)}) != nil {
				return
			}
			sent.Add(1)
		}
	})
	await(t, "four are sent", func() bool { return sent.Load() == 4 })
	time.Sleep(50 * time.Millisecond) // a fifth would have gone by now
	if n := sent.Load(); n != 4 {
		t.Errorf("%d sent without a verdict", n)
	}
	// Another lane to the same replica, and other calls, are not held up.
	if _, err := a.Standing(t.Context(), b.member()); err != nil {
		t.Error(err)
	}
	close(b.host.stuck)
	for range 20 {
		if _, err := lane.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	over.Wait()
	_ = lane.Close()
	if err := lane.Send(nil); err == nil {
		t.Error("sent on a closed lane")
	}
}

func TestCloseEndsSendAndRecv(t *testing.T) {
	a, b := start(t, Options{ID: "a", Window: 1}), start(t, Options{ID: "b"})
	b.host.stuck = make(chan struct{})
	lane, err := a.Forward(t.Context(), b.member())
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	go func() {
		if err := lane.Send([]byte("x")); err != nil {
			errs <- err
			return
		}
		errs <- lane.Send([]byte("y"))
	}()
	go func() { _, err := lane.Recv(); errs <- err }()
	await(t, "x is under way", func() bool { return len(lane.window) == 1 })
	_ = lane.Close()
	for range 2 {
		if err := <-errs; err == nil {
			t.Error("went on")
		}
	}
	close(b.host.stuck)
}

// A peer behind a network that swallows everything is noticed, and nobody else is held up meanwhile.
func TestBlackHole(t *testing.T) {
	up := &ups{m: map[string]bool{}}
	a := start(t, Options{ID: "a", Metrics: up, PingInterval: 50 * time.Millisecond, PingTimeout: 200 * time.Millisecond})
	b, c := start(t, Options{ID: "b"}), start(t, Options{ID: "c"})
	r := newRelay(t, b.Addr().String())
	to := Member{ID: "b", Address: r.Addr().String()}
	lane, err := a.Forward(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lane.Close() }()
	if _, err := a.Standing(t.Context(), c.member()); err != nil {
		t.Fatal(err)
	}
	await(t, "b answers pings", func() bool { return up.is("b") })
	r.held.Store(true)
	if err := lane.Send([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Standing(t.Context(), c.member()); err != nil {
		t.Errorf("c was held up: %v", err)
	}
	if _, err := lane.Recv(); err == nil { // returns at all: the lane was cut
		t.Error("a verdict out of nothing")
	}
	await(t, "b counts as down", func() bool { return !up.is("b") })
	r.held.Store(false)
	await(t, "b is back", func() bool { _, err := a.Standing(t.Context(), to); return err == nil })
	await(t, "b counts as up", func() bool { return up.is("b") && up.is("c") })
}

func TestUnusedPeerIsLetGo(t *testing.T) {
	up := &ups{m: map[string]bool{}}
	a := start(t, Options{ID: "a", Metrics: up, PingInterval: 20 * time.Millisecond, IdleTimeout: 300 * time.Millisecond})
	b := start(t, Options{ID: "b"})
	lane, err := a.Forward(t.Context(), b.member())
	if err != nil {
		t.Fatal(err)
	}
	await(t, "b answers", func() bool { return up.is("b") })
	time.Sleep(400 * time.Millisecond) // longer than IdleTimeout: an open lane keeps it
	if !up.is("b") {
		t.Error("a peer with a lane was let go")
	}
	_ = lane.Close()
	await(t, "b is let go", func() bool { return !up.has("b") })
	if _, err := a.Standing(t.Context(), b.member()); err != nil {
		t.Errorf("and can't be used again: %v", err)
	}
}

func TestMessageTooLarge(t *testing.T) {
	a, b := start(t, Options{ID: "a"}), start(t, Options{ID: "b", MaxMessage: 1 << 16})
	lane, err := a.Forward(t.Context(), b.member())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lane.Close() }()
	if err := lane.Send(make([]byte, a.o.MaxMessage)); err == nil {
		t.Error("sent what is over our own bound")
	}
	if err := lane.Send(make([]byte, 1<<17)); err != nil {
		t.Fatal(err)
	}
	if _, err := lane.Recv(); !errors.Is(err, ErrOverloaded) {
		t.Errorf("the other side's bound: %v", err)
	}
	if len(b.host.taken()) != 0 {
		t.Error("taken")
	}
}

// ups is a Metrics that knows who is up.
type ups struct {
	noMetrics
	mu sync.Mutex
	m  map[string]bool
}

func (u *ups) PeerUp(peer string, up bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.m[peer] = up
}

func (u *ups) PeerGone(peer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.m, peer)
}

func (u *ups) is(peer string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.m[peer]
}

func (u *ups) has(peer string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.m[peer]
	return ok
}
