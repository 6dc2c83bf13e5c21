package adapter

import (
	"sync"
	"time"
)

// pool keeps the idle connections to one backend, the latest used on top: the deeper ones grow old and go, and what
// is kept follows the load.
type pool struct {
	idleMax time.Duration // an idle connection is closed then
	limit   int           // idle connections kept at most

	mu     sync.Mutex
	idle   []*conn // by idleSince, oldest first
	timer  *time.Timer
	armed  bool
	closed bool
}

func newPool(idleMax time.Duration, limit int) *pool {
	return &pool{idleMax: idleMax, limit: limit}
}

// get returns the latest used connection that is alive, or nil. Dead ones on the way are closed.
func (p *pool) get() *conn {
	for {
		c := p.pop()
		if c == nil {
			return nil
		}
		now := time.Now()
		if now.Sub(c.idleSince) < p.idleMax && c.alive(now) {
			return c
		}
		c.abort()
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return c
}

// put keeps c for later, or closes it.
func (p *pool) put(c *conn) {
	if cap(c.head) > keepHeadBytes {
		c.head = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.limit {
		c.abort()
		return
	}
	c.idleSince = time.Now()
	p.idle = append(p.idle, c)
	p.arm(p.idleMax)
}

// arm has the timer call sweep after d, if it is not waiting already. The caller holds mu.
func (p *pool) arm(d time.Duration) {
	switch {
	case p.armed:
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(d, p.sweep)
	default:
		p.timer.Reset(d)
	}
	p.armed = true
}

// sweep closes what has been idle for too long.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if p.closed {
		return
	}
	now := time.Now()
	kept := p.idle[:0]
	for _, c := range p.idle {
		if now.Sub(c.idleSince) >= p.idleMax {
			c.abort()
			continue
		}
		kept = append(kept, c)
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	if len(kept) > 0 {
		p.arm(p.idleMax - now.Sub(kept[0].idleSince))
	}
}

// close closes what is idle; what is put later is closed as well.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	for _, c := range p.idle {
		c.abort()
	}
	p.idle = nil
}
