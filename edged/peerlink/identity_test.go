package peerlink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"iop/proto/peerpb"
)

// attempt dials b from a both ways; each must fail with a word of the cause.
func attempt(t *testing.T, a *Network, to Member, want string) {
	t.Helper()
	_, err := a.Standing(t.Context(), to)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("call: %v; want %q", err, want)
	}
	if l, err := a.Forward(t.Context(), to); err == nil {
		_ = l.Close()
		t.Errorf("lane: open; want %q", want)
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("lane: %v; want %q", err, want)
	}
	if c, err := a.DialRaft(t.Context(), to); err == nil {
		_ = c.Close()
		t.Errorf("raft: connected; want %q", want)
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("raft: %v; want %q", err, want)
	}
}

func TestWrongCluster(t *testing.T) {
	both(t, func(t *testing.T, options func(string) Options) {
		a, b := start(t, options("a")), start(t, options("b"))
		b.host.cluster = "c2"
		attempt(t, a.Network, b.member(), "of cluster c")
		await(t, "b tells why", func() bool { return b.log.says("of cluster c2") })
	})
}

func TestWrongReplica(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		a, b := start(t, Options{ID: "a"}), start(t, Options{ID: "b"})
		attempt(t, a.Network, Member{ID: "c", Address: b.Addr().String()}, "meant c, but this is b")
		await(t, "b tells why", func() bool { return b.log.says("meant c, but this is b") })
	})
	t.Run("tls", func(t *testing.T) {
		ca := newAuthority(t)
		a, b := start(t, Options{ID: "a", TLS: ca.files(ca.issue("a"))}), start(t, Options{ID: "b", TLS: ca.files(ca.issue("b"))})
		attempt(t, a.Network, Member{ID: "c", Address: b.Addr().String()}, "the certificate there is for b, not for replica c")
	})
}

func TestOneself(t *testing.T) {
	both(t, func(t *testing.T, options func(string) Options) {
		a := start(t, options("a"))
		attempt(t, a.Network, a.member(), "itself")
	})
	// Under another name the handshake notices it.
	a := start(t, Options{ID: "a"})
	attempt(t, a.Network, Member{ID: "b", Address: a.Addr().String()}, "meant b, but this is a")
}

func TestTwoOfOneName(t *testing.T) {
	a, b := start(t, Options{ID: "a"}), start(t, Options{ID: "b"})
	twin := start(t, Options{ID: "b"})
	_ = a
	c, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	h := twin.hello("b")
	if err := peerpb.WriteHello(c, h); err != nil {
		t.Fatal(err)
	}
	answer, err := peerpb.ReadHelloAnswer(c)
	if err != nil || !strings.Contains(answer.Refused, "dialled itself") {
		t.Errorf("%v, %v", answer, err)
	}
}

func TestProtocolVersions(t *testing.T) {
	b := start(t, Options{ID: "b"})
	go func() {
		for {
			if _, err := b.Raft().Accept(); err != nil {
				return
			}
		}
	}()
	for _, c := range []struct {
		major, minor uint32
		refused      string
	}{
		{peerpb.ProtocolMajor, peerpb.ProtocolMinor + 9, ""},
		{peerpb.ProtocolMajor + 1, 0, "speaks protocol 2"},
	} {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		h := &peerpb.Hello{Cluster: "c1", From: "a", To: "b", ProtocolMajor: c.major, ProtocolMinor: c.minor}
		if err := peerpb.WriteHello(conn, h); err != nil {
			t.Fatal(err)
		}
		a, err := peerpb.ReadHelloAnswer(conn)
		if err != nil || (a.Refused == "") != (c.refused == "") || !strings.Contains(a.Refused, c.refused) {
			t.Errorf("%d.%d: %v, %v", c.major, c.minor, a, err)
		}
		_ = conn.Close()
	}
}

func TestCertificates(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	early := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }
	client := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
	good := func(id string) func() (*tls.Config, error) { return ca.files(ca.issue(id)) }
	for _, c := range []struct {
		name   string
		a, b   func() (*tls.Config, error)
		want   string // said by a
		logged string // by b
	}{
		{"of b expired", good("a"), ca.files(ca.issue("b", expired)), "the certificate of b ended", ""},
		{"of a expired", ca.files(ca.issue("a", expired)), good("b"), "does not accept this replica's certificate", "the certificate of a ended"},
		{"of b not yet valid", good("a"), ca.files(ca.issue("b", early)), "are the clocks right", ""},
		{"of b by another authority", good("a"), ca.files(other.issue("b")), "another authority", ""},
		{"of a by another authority", ca.files(other.issue("a")), good("b"), "does not accept", "another authority"},
		{"of a names another", ca.files(ca.issue("x")), good("b"), "the certificate is for x, not for replica a", "is for x, not for replica a"},
		{"of a is a node's", ca.files(ca.issue("a", client)), good("b"), "does not accept", "not one of a replica"},
		{"of b names more", good("a"), ca.files(ca.issue("b.example.org")), "", ""},
		{"of b names less", good("a"), ca.files(ca.issue("bb")), "is for bb, not for replica b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := start(t, Options{ID: "a", TLS: c.a}), start(t, Options{ID: "b", TLS: c.b})
			if c.want == "" {
				if _, err := a.Standing(t.Context(), b.member()); err != nil {
					t.Error(err)
				}
				return
			}
			attempt(t, a.Network, b.member(), c.want)
			if c.logged != "" {
				await(t, "b tells "+c.logged, func() bool { return b.log.says(c.logged) })
			}
		})
	}
}

// A renewed certificate is used without a restart.
func TestRenewedCertificate(t *testing.T) {
	ca := newAuthority(t)
	var now atomic.Pointer[tls.Certificate]
	put := func(c tls.Certificate) { now.Store(&c) }
	put(ca.issue("b", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }))
	b := start(t, Options{ID: "b", TLS: func() (*tls.Config, error) { return ca.files(*now.Load())() }})
	a := start(t, Options{ID: "a", TLS: ca.files(ca.issue("a"))})
	if _, err := a.Standing(t.Context(), b.member()); err == nil {
		t.Fatal("the old one was taken")
	}
	put(ca.issue("b"))
	await(t, "the new one is taken", func() bool { _, err := a.Standing(t.Context(), b.member()); return err == nil })
}

func TestPlainTextToTLS(t *testing.T) {
	ca := newAuthority(t)
	plain, secure := start(t, Options{ID: "a"}), start(t, Options{ID: "b", TLS: ca.files(ca.issue("b"))})
	attempt(t, plain.Network, secure.member(), "b")
	await(t, "b tells why", func() bool { return secure.log.says("plain text arrived on a port that speaks TLS") })
	if _, err := plain.DialRaft(t.Context(), secure.member()); err == nil || !strings.Contains(err.Error(), "does it want TLS?") {
		t.Errorf("raft: %v", err)
	}
}

func TestTLSToPlainText(t *testing.T) {
	ca := newAuthority(t)
	plain, secure := start(t, Options{ID: "a"}), start(t, Options{ID: "b", TLS: ca.files(ca.issue("b"))})
	attempt(t, secure.Network, plain.member(), "does it speak TLS?")
	await(t, "a tells why", func() bool { return plain.log.says("the other side speaks TLS, and this port plain text") })
}

func TestStrangers(t *testing.T) {
	b := start(t, Options{ID: "b", HandshakeTimeout: 200 * time.Millisecond})
	for _, c := range []struct{ sent, logged string }{
		{"GET / HTTP/1.1\r\n\r\n", "it is no replica"},
		{peerpb.RaftPreface + "\xff\xff", "malformed"},
		{peerpb.RaftPreface + "\x00\x00", "does not say which replica"},
		{"PRI", "nothing received"}, // and no more: given up after the timeout
	} {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(c.sent)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", c.sent, err)
		}
		await(t, "the log has "+c.logged, func() bool { return b.log.says(c.logged) })
		_ = conn.Close()
	}
}

// A dialler that meets silence gives up in time, and one that is cancelled at once.
func TestSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by the kernel, answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	a := start(t, Options{ID: "a", HandshakeTimeout: 100 * time.Millisecond, CallTimeout: 100 * time.Millisecond})
	attempt(t, a.Network, Member{ID: "b", Address: l.Addr().String()}, "") // how gRPC says it depends on when it gave up
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.DialRaft(ctx, Member{ID: "b", Address: l.Addr().String()}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
