package nodelink

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"iop/proto/nodepb"
)

// closed waits until the edge closes c.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, c); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the edge keeps the connection")
		}
	}
}

func dial(t *testing.T, e *edge) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestStrangeConnectionsAreClosed(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.HandshakeTimeout = 50 * time.Millisecond })
	for name, bytes := range map[string]string{
		"silent":              "",
		"half a preface":      "IOP",
		"another protocol":    "GET / HTTP/1.1\r\n\r\n",
		"half a handshake":    "IOP/1 n 1",
		"a bad handshake":     "IOP/1 what ever\n",
		"a preface, then nil": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		c := dial(t, e)
		if _, err := io.WriteString(c, bytes); err != nil {
			t.Fatal(name, err)
		}
		closed(t, c)
	}
	dialRough(t, e).link() // and others are served
}

func TestUnprovedConnectionsCanNotPileUp(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.HandshakeTimeout, o.MaxPending = time.Hour, 4 })
	var kept []net.Conn
	for range 4 {
		c := dial(t, e)
		_, _ = io.WriteString(c, "I")
		kept = append(kept, c)
	}
	for range 3 {
		closed(t, dial(t, e))
	}
	for _, c := range kept {
		_ = c.Close()
	}
	var r *rough
	await(t, "room is made", func() bool {
		c, err := net.Dial("tcp", e.address)
		if err != nil {
			return false
		}
		defer func() { _ = c.Close() }()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, err = c.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded) // it was let in
	})
	r = dialRough(t, e).link()
	for range 20 { // proved connections don't count
		if _, ok := r.data(r.proof()); !ok {
			t.Fatal("refused")
		}
	}
}

func TestDataConnectionsAreProved(t *testing.T) {
	e := startEdge(t, nil)
	r := dialRough(t, e).link()
	if _, ok := r.data(r.proof()); !ok {
		t.Fatal("the right proof is refused")
	}
	for name, spoil := range map[string]func(*nodepb.Handshake){
		"secret":     func(h *nodepb.Handshake) { h.Secret = bytes.Repeat([]byte{1}, nodepb.SecretLen) },
		"node":       func(h *nodepb.Handshake) { h.Node = "other" },
		"generation": func(h *nodepb.Handshake) { h.Generation++ },
	} {
		h := r.proof()
		spoil(&h)
		c, ok := r.data(h)
		if ok {
			t.Errorf("a wrong %s passes", name)
		}
		closed(t, c)
	}
	await(t, "one is kept", func() bool { return e.Status()[0].Idle == 1 })
}

func TestNoRegistrationInTime(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.HandshakeTimeout = 50 * time.Millisecond })
	r := dialRough(t, e)
	if err := r.st.Send(&nodepb.NodeFrame{}); err == nil {
		_, err = r.st.Recv()
		if err == nil {
			t.Error("a link without a registration")
		}
	}
	silent := dialRough(t, e)
	if _, err := silent.st.Recv(); err == nil {
		t.Error("a link without a registration")
	}
}

func TestRefusedBeforeTheMachineIsAsked(t *testing.T) {
	e := startEdge(t, nil)
	for code, spoil := range map[string]func(*nodepb.Register){
		"protocol_version": func(r *nodepb.Register) { r.ProtocolMin, r.ProtocolMax = 2, 3 },
		"malformed":        func(r *nodepb.Register) { r.Instance = 0 },
		"unknown_node":     func(r *nodepb.Register) { r.Node = "stranger" },
		"wrong_token":      func(r *nodepb.Register) { r.Token = "Secret" },
	} {
		reg := registration()
		spoil(reg)
		refused := dialRough(t, e).register(reg).GetRefused()
		if refused.GetCode() != code || refused.GetMessage() == "" || refused.GetCure() == "" {
			t.Errorf("%s: %v", code, refused)
		}
		if bytes.Contains([]byte(refused.String()), []byte("Secret")) {
			t.Error("the token is shown:", refused)
		}
	}
	if e.y.generation != 0 {
		t.Error("the machine was asked")
	}
}
