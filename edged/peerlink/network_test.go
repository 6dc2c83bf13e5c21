package peerlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// both runs a test in plain text and with TLS.
func both(t *testing.T, test func(t *testing.T, options func(id string) Options)) {
	t.Run("plain", func(t *testing.T) {
		test(t, func(id string) Options { return Options{ID: id, Version: "v9"} })
	})
	t.Run("tls", func(t *testing.T) {
		a := newAuthority(t)
		test(t, func(id string) Options { return Options{ID: id, Version: "v9", TLS: a.files(a.issue(id))} })
	})
}

func TestCalls(t *testing.T) {
	both(t, func(t *testing.T, options func(string) Options) {
		a, b := start(t, options("a")), start(t, options("b"))
		ctx := t.Context()
		got, err := a.Standing(ctx, b.member())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b.host.Standing(), got); diff != "" {
			t.Error(diff)
		}
		if index, term, err := a.ReadIndex(ctx, b.member()); err != nil || index != 41 || term != 7 {
			t.Errorf("read index %d, %d, %v", index, term, err)
		}
		self := a.member()
		if err := a.Join(ctx, b.member(), self, "c1"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]Member{self}, b.host.joined); diff != "" {
			t.Error(diff)
		}
		if err := a.Join(ctx, b.member(), self, "c2"); !errors.Is(err, ErrRefused) {
			t.Errorf("joined a cluster that b is not of: %v", err)
		}
		if err := a.Join(ctx, b.member(), Member{ID: "unwanted", Address: "x:1"}, "c1"); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("a fault of the host: %v", err)
		}
		if err := a.Join(ctx, b.member(), Member{ID: "x", Address: "nowhere"}, "c1"); err == nil {
			t.Error("an address that is none was taken")
		}
	})
}

func TestErrorsOfTheHost(t *testing.T) {
	a, b := start(t, Options{ID: "a"}), start(t, Options{ID: "follower"})
	if _, _, err := a.ReadIndex(t.Context(), b.member()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("%v", err)
	}
	b.Network.host.Store(nil)
	if _, err := a.Standing(t.Context(), b.member()); !errors.Is(err, ErrStarting) {
		t.Errorf("%v", err)
	}
	if _, err := a.Forward(t.Context(), b.member()); !errors.Is(err, ErrStarting) {
		t.Errorf("%v", err)
	}
}

func TestRaftConnections(t *testing.T) {
	both(t, func(t *testing.T, options func(string) Options) {
		a, b := start(t, options("a")), start(t, options("b"))
		echoed := make(chan error, 1)
		go func() {
			c, err := b.Raft().Accept()
			if err == nil {
				_, err = io.CopyN(c, c, 5)
				_ = c.Close()
			}
			echoed <- err
		}()
		c, err := a.DialRaft(t.Context(), b.member())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		back, err := io.ReadAll(c)
		if string(back) != "hello" {
			t.Errorf("%q, %v", back, err)
		}
		if err := <-echoed; err != nil {
			t.Error(err)
		}
	})
}

// A connection that raft never closed ends with the Network, else its reader would stay for ever.
func TestRaftConnectionsEndWithTheNetwork(t *testing.T) {
	a := start(t, Options{ID: "a"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Options{ID: "b", Listener: l})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	accepted := make(chan net.Conn, 1)
	go func() { c, _ := b.Raft().Accept(); accepted <- c }()
	c, err := a.DialRaft(t.Context(), Member{ID: "b", Address: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	theirs := <-accepted
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("still open")
	}
	if _, err := b.DialRaft(t.Context(), a.member()); !errors.Is(err, ErrClosed) {
		t.Errorf("dialled after the end: %v", err)
	}
	if _, err := b.Standing(t.Context(), a.member()); !errors.Is(err, ErrClosed) {
		t.Errorf("asked after the end: %v", err)
	}
}

// A replica without a cluster speaks with all, for it is about to form or to join one.
func TestEmptyReplicaIsWelcome(t *testing.T) {
	both(t, func(t *testing.T, options func(string) Options) {
		a, b := start(t, options("a")), start(t, options("b"))
		a.host.cluster = ""
		if _, err := a.Standing(t.Context(), b.member()); err != nil {
			t.Error(err)
		}
		if _, err := b.Standing(t.Context(), a.member()); err != nil {
			t.Error(err)
		}
	})
}

func TestAddressOfAPeerChanges(t *testing.T) {
	a, old := start(t, Options{ID: "a"}), start(t, Options{ID: "b"})
	if _, err := a.Standing(t.Context(), old.member()); err != nil {
		t.Fatal(err)
	}
	moved := start(t, Options{ID: "b"})
	lane, err := a.Forward(t.Context(), moved.member())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lane.Close() }()
	if err := lane.Send([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if v, err := lane.Recv(); err != nil || v != VerdictAccepted {
		t.Fatal(v, err)
	}
	if got := fmt.Sprint(moved.host.taken(), old.host.taken()); got != "[x] []" {
		t.Error(got)
	}
}

// TestChangeAndDigest reach the other side with all that they say, and its refusals come back.
func TestChangeAndDigest(t *testing.T) {
	a, b := start(t, Options{ID: "a"}), start(t, Options{ID: "b"})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	want := []Change{{Remove: "c"}, {Transfer: true, To: "a"}, {Transfer: true}}
	for _, c := range want {
		if err := a.Change(ctx, b.member(), c); err != nil {
			t.Fatal(err)
		}
	}
	b.host.mu.Lock()
	if !slices.Equal(b.host.changes, want) {
		t.Errorf("changes %v", b.host.changes)
	}
	b.host.mu.Unlock()
	if err := a.Change(ctx, b.member(), Change{Remove: "nobody"}); !errors.Is(err, ErrNotLeader) {
		t.Error(err)
	}
	if err := a.Change(ctx, b.member(), Change{}); err == nil {
		t.Error("a change that changes nothing was taken")
	}
	index, digest, err := a.Digest(ctx, b.member(), [32]byte{1, 31: 9})
	if err != nil || index != 7 || digest != [32]byte{2, 31: 9} {
		t.Error(index, digest, err)
	}
}
