package nodelink

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// dataConn is one data connection. It belongs to the pool, or to the one run that took it.
type dataConn struct {
	net.Conn          // TLS, if there is
	raw      net.Conn // what is closed: closing TLS could block
	idleAt   time.Duration
}

func (c *dataConn) shut() { _ = c.raw.Close() }

// pool is a link's data connections, under the link's lock. Connections are taken and put back at one end, so that the
// warm ones work and the others grow old.
type pool struct {
	idle    []*dataConn
	busy    map[*dataConn]struct{}
	waiters []chan *dataConn // exchanges that wait for one, each with one place
	asked   int              // told to the node and not arrived
	askedAt time.Duration
}

// askedMax is how long the node may take to dial before it is asked again.
const askedMax = time.Second

var (
	errNoSuchLink = errors.New("no such link")
	errPoolFull   = errors.New("too many data connections on this link")
)

// admitData checks a data connection's handshake, answers it and gives it to its link.
func (l *Links) admitData(conn, raw net.Conn) error {
	h, err := nodepb.ReadHandshake(conn)
	if err != nil {
		return err
	}
	k := l.find(fsm.NodeID(h.Node), fsm.Generation(h.Generation))
	if k == nil || subtle.ConstantTimeCompare(k.secret, h.Secret) != 1 {
		_, _ = conn.Write([]byte(nodepb.HandshakeNo))
		return errNoSuchLink
	}
	if _, err := conn.Write([]byte(nodepb.HandshakeOK)); err != nil {
		return err
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return k.admit(&dataConn{Conn: conn, raw: raw})
}

// admit adds a new connection.
func (k *link) admit(c *dataConn) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pool.asked = max(0, k.pool.asked-1)
	if k.isLost {
		return errLost
	}
	if len(k.pool.idle)+len(k.pool.busy) >= k.links.o.MaxConnections {
		return errPoolFull
	}
	k.offer(c)
	return nil
}

// offer gives a connection to the exchange that has waited longest, or keeps it.
func (k *link) offer(c *dataConn) {
	if k.isLost {
		c.shut()
		return
	}
	if len(k.pool.waiters) > 0 {
		w := k.pool.waiters[0]
		k.pool.waiters = k.pool.waiters[1:]
		k.pool.busy[c] = struct{}{}
		w <- c
		return
	}
	c.idleAt = k.now()
	k.pool.idle = append(k.pool.idle, c)
}

// take returns a connection, waiting up to ConnectWait for one. Refusals are ends of the exchange.
func (k *link) take(ctx context.Context) (*dataConn, *End) {
	k.mu.Lock()
	if k.isLost || k.leaving || k.retired {
		k.mu.Unlock()
		return nil, &End{Dispatched: DispatchedNo, Code: CodeLinkLost, Message: "the node's link is gone"}
	}
	if n := len(k.pool.idle); n > 0 {
		c := k.pool.idle[n-1]
		k.pool.idle[n-1] = nil
		k.pool.idle = k.pool.idle[:n-1]
		k.pool.busy[c] = struct{}{}
		if 2*(n-1) < k.links.o.SpareConnections {
			k.ask()
		}
		k.mu.Unlock()
		return c, nil
	}
	w := make(chan *dataConn, 1)
	k.pool.waiters = append(k.pool.waiters, w)
	k.ask()
	k.mu.Unlock()
	return k.await(ctx, w)
}

func (k *link) await(ctx context.Context, w chan *dataConn) (*dataConn, *End) {
	timer := time.NewTimer(k.links.o.ConnectWait)
	defer timer.Stop()
	end := &End{Dispatched: DispatchedNo}
	select {
	case c := <-w:
		return c, nil
	case <-ctx.Done():
		end.Code, end.Message = CodeCanceled, context.Cause(ctx).Error()
	case <-k.lost:
		end.Code, end.Message = CodeLinkLost, "the node's link was lost"
	case <-timer.C:
		end.Code, end.Message = CodeNoConnection, "the node opened no data connection in time"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, other := range k.pool.waiters {
		if other == w {
			k.pool.waiters = append(k.pool.waiters[:i:i], k.pool.waiters[i+1:]...)
			return nil, end
		}
	}
	// It was served in the same moment.
	select {
	case c := <-w:
		delete(k.pool.busy, c)
		k.offer(c)
	default:
	}
	return nil, end
}

// ask tells the node how many connections are short, ahead of need.
func (k *link) ask() {
	if k.pool.asked > 0 && k.now()-k.pool.askedAt > askedMax {
		k.pool.asked = 0
	}
	have := len(k.pool.idle) + k.pool.asked
	want := len(k.pool.waiters) + k.links.o.SpareConnections - have
	want = min(want, k.links.o.MaxConnections-have-len(k.pool.busy))
	if want <= 0 {
		return
	}
	k.pool.asked += want
	k.pool.askedAt = k.now()
	k.sendLocked(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_NeedConnections{
		NeedConnections: &nodepb.NeedConnections{Count: uint32(want)},
	}})
}

// tend closes connections that have been spare for long, and asks for missing ones.
func (k *link) tend() {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := 0
	for old < len(k.pool.idle)-k.links.o.SpareConnections && k.now()-k.pool.idle[old].idleAt > k.links.o.IdleTimeout {
		k.pool.idle[old].shut()
		old++
	}
	if old > 0 {
		k.pool.idle = append([]*dataConn(nil), k.pool.idle[old:]...)
	}
	if k.ready && !k.retired && (len(k.pool.waiters) > 0 || 2*len(k.pool.idle) < k.links.o.SpareConnections) {
		k.ask()
	}
}

// distrust closes all idle connections, after one of them turned out to be dead.
func (k *link) distrust() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.pool.idle {
		c.shut()
	}
	k.pool.idle = nil
}

// shutData closes all connections of a lost link; exchanges that read or write on them see it at once.
func (k *link) shutData() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.pool.idle {
		c.shut()
	}
	for c := range k.pool.busy {
		c.shut()
	}
	k.pool.idle, k.pool.waiters = nil, nil
}
