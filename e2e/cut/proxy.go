package cut

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Direction is one way through the proxy.
type Direction int

// The directions: Up is from the side that dialled to the target.
const (
	Up Direction = iota
	Down
)

// mode is what happens to bytes of one direction of one connection.
type mode int

const (
	pass    mode = iota
	hold         // kept back, ends of connections too
	swallow      // read and thrown away; ends of connections are kept back
)

// Proxy carries connections to a target. All methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu      sync.Mutex
	turn    *sync.Cond // a mode, the delay or the life of a connection changed
	target  string
	modes   [2]mode // of new connections
	refuse  bool
	delay   time.Duration
	rate    int    // bytes a second of one direction of one connection; 0 = no bound
	pattern []byte // HoldAnswerTo
	links   map[*link]bool
	closed  bool
	total   int
}

// New starts a proxy to target on a free port of the loopback.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen as a proxy: %w", err)
	}
	p := &Proxy{listener: l, target: target, links: map[*link]bool{}}
	p.turn = sync.NewCond(&p.mu)
	p.wait.Go(p.accept)
	return p, nil
}

// Address is host:port to dial.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Retarget sends new connections elsewhere.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
}

// Close ends the proxy and all connections, and waits for both.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.wait.Wait()
}

// Cut resets every connection, on both sides.
func (p *Proxy) Cut() { p.cut(func(*link) bool { return true }) }

// CutHeld resets the connections that Hold or Swallow have taken: the late close of an old link.
func (p *Proxy) CutHeld() {
	p.cut(func(l *link) bool { return l.modes[Up] != pass || l.modes[Down] != pass })
}

func (p *Proxy) cut(which func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if which(l) {
			l.reset()
		}
	}
	p.turn.Broadcast()
}

// Refuse closes new connections at once while on.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	p.refuse = on
	p.mu.Unlock()
}

// Delay keeps every piece of bytes back for d, in both directions.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	p.delay = d
	p.mu.Unlock()
}

// Throttle carries at most so many bytes a second in each direction of each connection; 0 ends that.
func (p *Proxy) Throttle(rate int) {
	p.mu.Lock()
	p.rate = rate
	p.mu.Unlock()
}

// Hold keeps bytes and closes of the given directions back, on connections that stand now.
func (p *Proxy) Hold(ds ...Direction) { p.set(hold, ds) }

// Swallow throws bytes of the given directions away, on connections that stand now; nobody is told.
func (p *Proxy) Swallow(ds ...Direction) { p.set(swallow, ds) }

// HoldNew is Hold for the connections to come.
func (p *Proxy) HoldNew(ds ...Direction) {
	p.mu.Lock()
	for _, d := range ds {
		p.modes[d] = hold
	}
	p.mu.Unlock()
}

// SwallowNew is Swallow for the connections to come.
func (p *Proxy) SwallowNew(ds ...Direction) {
	p.mu.Lock()
	for _, d := range ds {
		p.modes[d] = swallow
	}
	p.mu.Unlock()
}

// HoldAnswerTo holds the Down direction of every connection from the moment that pattern goes Up on it.
func (p *Proxy) HoldAnswerTo(pattern string) {
	p.mu.Lock()
	p.pattern = []byte(pattern)
	p.mu.Unlock()
}

// Pass lets everything through again, what was held first.
func (p *Proxy) Pass() {
	p.mu.Lock()
	p.modes, p.pattern, p.delay, p.rate, p.refuse = [2]mode{}, nil, 0, 0, false
	p.mu.Unlock()
	p.set(pass, []Direction{Up, Down})
}

func (p *Proxy) set(m mode, ds []Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		for _, d := range ds {
			l.modes[d] = m
		}
	}
	p.turn.Broadcast()
}

// Connections counts the standing connections; Held those of them with a direction held or swallowed; Total all that
// ever came.
func (p *Proxy) Connections() (standing, held, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.modes[Up] != pass || l.modes[Down] != pass {
			held++
		}
	}
	return len(p.links), held, p.total
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wait.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(near *net.TCPConn) {
	p.mu.Lock()
	target, refuse := p.target, p.refuse || p.closed
	p.total++
	p.mu.Unlock()
	if refuse {
		_ = near.Close()
		return
	}
	far, err := net.Dial("tcp", target)
	if err != nil {
		_ = near.SetLinger(0)
		_ = near.Close()
		return
	}
	p.carry(near, far.(*net.TCPConn))
}
