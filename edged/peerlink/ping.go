package peerlink

import (
	"context"
	"errors"
	"time"

	"iop/proto/peerpb"
)

// ping asks for a sign of life. Without one, and without any other byte of the peer, the connection is cut: TCP alone
// would wait for minutes for one that vanished, and so would everything that is sent on it.
func (p *peer) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.n.o.PingTimeout)
	defer cancel()
	began := time.Now()
	_, err := p.calls.Ping(ctx, &peerpb.PingRequest{})
	switch {
	case err == nil:
		p.n.o.Metrics.PeerRoundTrip(p.to.ID, time.Since(began))
	case errors.Is(ctx.Err(), context.Canceled):
		return
	case errors.Is(err, context.DeadlineExceeded):
		p.cut()
	}
	p.mark(err)
}

// mark notes whether the peer answered, and logs a change and each new cause.
func (p *peer) mark(err error) {
	p.n.o.Metrics.PeerUp(p.to.ID, err == nil)
	p.mu.Lock()
	was, said := p.up, p.said
	p.up, p.said = err == nil, ""
	if err != nil {
		p.said = err.Error()
	}
	now := p.said
	p.mu.Unlock()
	switch {
	case err == nil && !was:
		p.n.o.Logger.Info("replica answers", "replica", p.to.ID, "address", p.to.Address)
	case err != nil && (was || said == "" || errors.Is(err, ErrRefused) && said != now):
		p.n.o.Logger.Warn("replica does not answer", "replica", p.to.ID, "address", p.to.Address, "error", err)
	}
}

// gone forgets the metrics of a peer, unless there is another link to it by now.
func (n *Network) gone(p *peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.peers[p.to.ID] == nil {
		n.o.Metrics.PeerGone(p.to.ID)
	}
}
