package nodelink

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	"iop/fsm"
	"iop/proto/nodepb"
)

var errNoConn = errors.New("nodelink: the call came over no connection of this listener")

// serve is one call of a node: registration, then the life of its link. life outlives the call.
func (l *Links) serve(life context.Context, s stream) error {
	p, _ := peer.FromContext(s.Context())
	if p == nil {
		return errNoConn
	}
	addr, ok := p.Addr.(controlAddr)
	if !ok {
		return errNoConn
	}
	conn := addr.conn
	reg, err := l.receiveRegister(s, conn)
	if err != nil {
		return err
	}
	entry, refused := l.check(reg)
	if refused == nil {
		conn.proved()
		if reg.Check {
			return s.Send(l.checked(reg, entry))
		}
		var k *link
		if k, refused = l.register(life, s.Context(), reg, entry, conn); k != nil {
			l.o.Metrics.LinkUp(reg.Node)
			l.live(life, k, s)
			return nil
		}
	}
	l.o.Metrics.LinkRefused(refused.Code)
	if l.faults.News("link refused "+reg.Node+" "+refused.Code, conn.Conn.RemoteAddr(), nil) {
		l.o.Logger.Warn("link: refused", "node", reg.Node, "remote", conn.Conn.RemoteAddr().String(),
			"code", refused.Code, "cause", refused.Message)
	}
	return s.Send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Refused{Refused: refused}})
}

// receiveRegister waits for the first frame, not longer than HandshakeTimeout.
func (l *Links) receiveRegister(s stream, conn *controlConn) (*nodepb.Register, error) {
	timer := time.AfterFunc(l.o.HandshakeTimeout, func() { _ = conn.Close() })
	defer timer.Stop()
	f, err := s.Recv()
	if err != nil {
		return nil, err
	}
	reg := f.GetRegister()
	if reg == nil {
		_ = conn.Close()
		return nil, errors.New("the first frame of a link must be Register")
	}
	return reg, nil
}

// live runs k until it is lost, cleans up, and leaves when the node can have read what is queued.
func (l *Links) live(life context.Context, k *link, s stream) {
	stopped := make(chan error, 1)
	l.over.Go(func() { k.propose(life) })
	l.over.Go(func() { stopped <- k.receive(s) })
	var sender sync.WaitGroup
	sender.Go(func() { k.deliver(s) })

	k.watch(stopped)
	l.remove(k)
	k.shutData()
	k.mu.Lock()
	reason, orderly := k.reason, k.orderly
	k.mu.Unlock()
	close(k.queue) // nothing is queued after the loss
	if !orderly {
		_ = k.conn.Close()
	}
	timer := time.AfterFunc(flushWait, func() { _ = k.conn.Close() })
	sender.Wait()
	timer.Stop()
	l.o.Metrics.LinkDown(string(k.node), reason.String())
	level := slog.LevelWarn
	if reason == fsm.ReasonGoodbye || reason == fsm.ReasonSuperseded {
		level = slog.LevelInfo
	}
	l.o.Logger.Log(context.Background(), level, "link: gone", "node", k.node, "generation", k.generation, "reason", reason.String())
}

// flushWait is how long a node may take to read the last frames of an orderly end.
const flushWait = time.Second

// watch is the loop that owns the link: it returns when the link is lost.
func (k *link) watch(stopped <-chan error) {
	o := &k.links.o
	silenceMax := time.Duration(o.HeartbeatMissed) * o.HeartbeatInterval
	ticker := time.NewTicker(o.HeartbeatInterval)
	defer ticker.Stop()
	last := k.now()
	hungUp := false
	for {
		select {
		case <-k.lost:
			return
		case err := <-stopped:
			if hungUp = k.hangUp(); !hungUp {
				k.closed(err)
			}
		case <-ticker.C:
			if hungUp {
				continue
			}
			late := k.now() - last - o.HeartbeatInterval
			last = k.now()
			// This process stood still itself: what the node sent meanwhile has not been read yet.
			if late < o.HeartbeatInterval && max(k.silence(), k.stuck()) > silenceMax {
				k.lose(fsm.ReasonHeartbeat, true, false)
				continue
			}
			if k.revoked() {
				k.lose(fsm.ReasonLinkLost, true, false)
				continue
			}
			k.beat(true) // answered at once: the round trip
			k.tend()
		}
	}
}

// revoked tells whether the token that the node proved itself with is no longer its. It is looked at with each heartbeat,
// because there are many ways to replace a token (a refresh, a join token that was used, on any edge) and only one catalog.
func (k *link) revoked() bool {
	entry, known := k.links.o.Catalog.Node(k.node)
	if !known || tokenMatches(k.token, entry.TokenSHA256) {
		return false // a node that is gone from the configuration has its links fenced by the machine
	}
	k.links.o.Logger.Warn("link: the node's token was replaced, so the link is ended", "node", k.node, "generation", k.generation)
	return true
}

// closed acts on the end of the node's frames.
func (k *link) closed(err error) {
	reason := fsm.ReasonLinkLost
	k.mu.Lock()
	if k.leaving {
		reason = fsm.ReasonGoodbye
	}
	k.mu.Unlock()
	if !errors.Is(err, io.EOF) {
		k.links.o.Logger.Info("link: closed by the node or the network", "node", k.node, "generation", k.generation, "error", err)
	}
	k.lose(reason, true, errors.Is(err, io.EOF))
}

// deliver sends what is queued until the queue is closed or the transport fails.
func (k *link) deliver(s stream) {
	broken := false
	for f := range k.queue {
		if broken {
			continue
		}
		k.sendingSince.Store(max(1, int64(k.now())))
		err := s.Send(f)
		k.sendingSince.Store(0)
		if err != nil {
			broken = true
			if !k.carries() {
				k.lose(fsm.ReasonLinkLost, true, false)
			}
		}
	}
}

// receive takes the node's frames until the transport fails. Handling one never blocks.
func (k *link) receive(s stream) error {
	for {
		f, err := s.Recv()
		if err != nil {
			return err
		}
		select {
		case <-k.lost:
			k.links.o.Metrics.FrameDropped("old_generation")
			continue
		default:
		}
		k.heard()
		k.handle(f)
	}
}
