package cut

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo starts a line echo server.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return l.Addr().String()
}

type caller struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *caller {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &caller{t: t, Conn: c, r: bufio.NewReader(c)}
}

func (c *caller) say(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) hear(want string) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.r.ReadString('\n'); err != nil || got != want+"\n" {
		c.t.Fatalf("heard %q, %v, want %q", got, err, want)
	}
}

func (c *caller) silent() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if got, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("heard %q", got)
	} else if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("the connection ended: ", err)
	}
}

func TestProxyHoldsSwallowsAndCuts(t *testing.T) {
	t.Parallel()
	p, err := New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := dial(t, p)
	c.say("one")
	c.hear("one")
	p.Hold(Down)
	c.say("two")
	c.silent()
	other := dial(t, p)
	other.say("new connections pass")
	other.hear("new connections pass")
	p.Pass()
	c.hear("two")
	p.Swallow(Up)
	c.say("three")
	c.silent()
	p.Pass()
	c.say("four")
	c.hear("four")
	p.HoldAnswerTo("secret")
	c.say("se" + "cret")
	c.silent()
	if _, held, _ := p.Connections(); held != 1 {
		t.Error("held", held)
	}
	p.CutHeld()
	if _, err := io.ReadAll(c.r); err == nil {
		t.Error("the cut looks like an orderly end")
	}
	other.say("and others stand")
	other.hear("and others stand")
	p.Refuse(true)
	late := dial(t, p)
	if _, err := late.r.ReadByte(); err == nil {
		t.Error("a refused connection carried something")
	}
}

func TestProxyCarriesOrderlyEnds(t *testing.T) {
	t.Parallel()
	p, err := New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := dial(t, p)
	c.say("last")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c.r); string(got) != "last\n" || err != nil {
		t.Error(got, err)
	}
}
