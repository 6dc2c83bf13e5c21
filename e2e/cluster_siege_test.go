package e2e

import (
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/proto/peerpb"
)

// besieger dials a port that is not meant for it, again and again, until stop. Whatever it does, it may not be let in.
type besieger struct {
	c       *cluster
	foreign string // directory of certificates of another authority
	let     atomic.Int64
	tried   atomic.Int64
	stop    chan struct{}
	wait    sync.WaitGroup
}

// pair is a certificate with its key, as iopctl laid it down.
func (s *besieger) pair(dir, kind, id string) tls.Certificate {
	s.c.t.Helper()
	home := filepath.Join(dir, kind, id)
	p, err := tls.LoadX509KeyPair(filepath.Join(home, "cert.pem"), filepath.Join(home, "key.pem"))
	if err != nil {
		s.c.t.Fatal(err)
	}
	return p
}

// repeat has several strangers do the same until stop.
func (s *besieger) repeat(strangers int, what func(r *rand.Rand)) {
	for k := range strangers {
		r := rand.New(rand.NewPCG(uint64(k), 7))
		s.wait.Go(func() {
			for !isOver(s.stop) {
				what(r)
				s.tried.Add(1)
				time.Sleep(time.Duration(5+r.IntN(10)) * time.Millisecond) // the rhythm of the siege
			}
		})
	}
}

func isOver(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// strangers dials from where no replica and no node is.
func strangers(address string) (net.Conn, error) {
	d := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(66+rand.IntN(3)))}}
	return d.Dial("tcp", address)
}

// dawdle connects, says one byte and waits to be thrown out.
func (s *besieger) dawdle(address string) {
	c, err := strangers(address)
	if err != nil {
		return
	}
	_, _ = c.Write([]byte{0x16})
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second)) // it is thrown out long before
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
}

// garble sends whatever.
func garble(address string, r *rand.Rand) {
	c, err := strangers(address)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	b := make([]byte, 1+r.IntN(2000))
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	if r.IntN(2) == 0 {
		copy(b, []byte{0x16, 3, 1, 0xff, 0xff})
	}
	_, _ = c.Write(b)
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, _ = io.Copy(io.Discard, c)
}

// pretend does the handshake with a certificate and says hello as a replica; a wanted hello means that it was let in.
func (s *besieger) pretend(address, alpn string, cert *tls.Certificate, h *peerpb.Hello) {
	raw, err := strangers(address)
	if err != nil {
		return
	}
	defer func() { _ = raw.Close() }()
	_ = raw.SetDeadline(time.Now().Add(5 * time.Second))
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}, MinVersion: tls.VersionTLS13}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	c := tls.Client(raw, config)
	if c.Handshake() != nil {
		return
	}
	if alpn == peerpb.ALPNCalls { // the server's settings are the first that who was let in hears
		if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
			s.let.Add(1)
		}
		return
	}
	if peerpb.WriteHello(c, h) != nil {
		return
	}
	if a, err := peerpb.ReadHelloAnswer(c); err == nil && a.Refused == "" {
		s.let.Add(1)
	}
}

// huge says that a hello of 4 GiB follows, from a replica's own certificate.
func (s *besieger) huge(address string, cert tls.Certificate) {
	raw, err := strangers(address)
	if err != nil {
		return
	}
	defer func() { _ = raw.Close() }()
	_ = raw.SetDeadline(time.Now().Add(5 * time.Second))
	c := tls.Client(raw, &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{peerpb.ALPNRaft}, MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
	})
	if c.Handshake() != nil {
		return
	}
	_, _ = io.WriteString(c, peerpb.RaftPreface+"\xff\xff\xff\xff"+strings.Repeat("\xff", 4096))
	_, _ = io.Copy(io.Discard, c)
}

// TestSiegeOfTheClusterPort: strangers with certificates of another authority, of nodes, of other replicas, and with none
// at all, dial the cluster ports and node ports all the time, dawdle, and send garbage and huge frames. None is let in;
// replicas and nodes that lose all their connections meanwhile find each other again; logs are no flood, and memory and
// goroutines are where they were.
func TestSiegeOfTheClusterPort(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 4)
	l.log = "info"
	c := newEmptyCluster(t, l, 3)
	c.secure()
	own := filepath.Join(c.dir, "certs")
	s := &besieger{c: c, foreign: filepath.Join(c.dir, "foreign"), stop: make(chan struct{})}
	c.at(0).iopctl(0, "certs", "init", "--dir", s.foreign)
	c.at(0).iopctl(0, "certs", "edge", c.id(1), "--dir", s.foreign)
	for i := range c.replicas {
		c.launch(i)
	}
	c.awaitAll()
	c.startNodes()
	c.at(0).want(200, ask{tag: "before", model: "ornith-fast"})
	goroutines, heap := c.sizes()
	target := c.leader()
	port, nodes := c.own(target, 7400), c.own(target, 7443)
	foreign, node, other := s.pair(s.foreign, "edges", c.id(1)), s.pair(own, "nodes", "n1"), s.pair(own, "edges", c.id((target+1)%3))
	hello := func(from, to int) *peerpb.Hello {
		return &peerpb.Hello{From: c.id(from), To: c.id(to), ProtocolMajor: peerpb.ProtocolMajor, ProtocolMinor: peerpb.ProtocolMinor}
	}
	end := sync.OnceFunc(func() { close(s.stop); s.wait.Wait() })
	t.Cleanup(end)
	s.repeat(150, func(*rand.Rand) { s.dawdle(port) })
	s.repeat(400, func(*rand.Rand) { s.dawdle(nodes) })
	s.repeat(2, func(r *rand.Rand) { garble(port, r); garble(nodes, r) })
	s.repeat(1, func(*rand.Rand) {
		for _, alpn := range []string{peerpb.ALPNRaft, peerpb.ALPNCalls} {
			s.pretend(port, alpn, nil, hello(1, target))
			s.pretend(port, alpn, &foreign, hello(1, target))
			s.pretend(port, alpn, &node, hello(1, target))
		}
		s.pretend(port, peerpb.ALPNRaft, &other, hello((target+2)%3, target))       // another replica's name
		s.pretend(port, peerpb.ALPNRaft, &other, hello((target+1)%3, (target+2)%3)) // a hello to somebody else, replayed
		s.pretend(port, peerpb.ALPNRaft, &other, hello(target, target))             // the target's own name
		s.huge(port, other)
	})
	await(t, "the siege is on", func() bool { return s.tried.Load() > 200 })
	for range 2 {
		for _, row := range append(c.paths, c.lines["n1"]) {
			for _, p := range row {
				p.Cut()
			}
		}
		c.leader()
		c.awaitLinks("n1")
		for i := range c.replicas {
			c.at(i).want(200, ask{tag: "besieged, through " + c.id(i), model: "ornith-fast"})
		}
	}
	end()
	t.Logf("%d tries", s.tried.Load())
	if n := s.let.Load(); n > 0 {
		t.Errorf("%d strangers were let in", n)
	}
	for i := range c.replicas {
		for _, door := range []string{"cluster listener", "node listener"} {
			if n := strings.Count(c.at(i).edge.out.String(), door); n > 100 {
				t.Errorf("%s logged %d lines of its %s", c.id(i), n, door)
			}
		}
	}
	await(t, "goroutines are where they were", func() bool { g, _ := c.sizes(); return g <= goroutines+30 })
	if _, now := c.sizes(); now > heap+(64<<20) {
		t.Errorf("%.0f MiB of heap after %.0f", now/(1<<20), heap/(1<<20))
	}
	c.agree()
}

// sizes are the goroutines and bytes in use of all replicas.
func (c *cluster) sizes() (goroutines, heap float64) {
	c.t.Helper()
	for i := range c.replicas {
		goroutines += c.at(i).metric("go_goroutines")
		heap += c.at(i).metric("go_memstats_heap_alloc_bytes")
	}
	return goroutines, heap
}
