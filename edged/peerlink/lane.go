package peerlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"

	"iop/proto/peerpb"
)

// Lane carries batches to one replica. One goroutine may send while another receives; Close ends both.
type Lane struct {
	p      *peer
	stream grpc.BidiStreamingClient[peerpb.Batches, peerpb.Verdict]
	ctx    func() <-chan struct{} // closed when the lane is over
	cancel context.CancelFunc
	once   sync.Once
	window chan struct{} // one token per batch without a verdict
	max    int
	sent   uint64
	got    uint64
}

// Forward opens a lane. ctx, and CallTimeout, bound only the opening.
func (n *Network) Forward(ctx context.Context, to Member) (*Lane, error) {
	p, err := n.peer(to)
	if err == nil {
		var l *Lane
		if l, err = p.open(ctx); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("lane to %s at %s: %w", to.ID, to.Address, err)
}

func (p *peer) open(ctx context.Context) (*Lane, error) {
	opening, done := context.WithTimeout(ctx, p.n.o.CallTimeout)
	defer done()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(opening, cancel)
	stream, err := p.begin(life)
	if !stop() && err == nil {
		err = opening.Err()
	}
	if err != nil {
		cancel()
		if opening.Err() != nil {
			err = fmt.Errorf("%w: %w", opening.Err(), err)
		}
		return nil, err
	}
	p.lanes.Add(1)
	return &Lane{
		p: p, stream: stream, ctx: stream.Context().Done, cancel: cancel,
		window: make(chan struct{}, p.n.o.Window), max: p.n.o.MaxMessage - messageSlack,
	}, nil
}

// messageSlack is what a message has around its batches, in bytes, and more.
const messageSlack = 1 << 10

// begin starts the stream and waits until the other side says who it is.
func (p *peer) begin(life context.Context) (grpc.BidiStreamingClient[peerpb.Batches, peerpb.Verdict], error) {
	life, err := p.say(life)
	if err != nil {
		return nil, err
	}
	stream, err := p.calls.Forward(life)
	if err != nil {
		return nil, cause(err)
	}
	header, err := stream.Header()
	if err != nil {
		return nil, cause(err)
	}
	if len(header) == 0 { // the other side ended the call at once; why, Recv tells
		if _, err := stream.Recv(); err != nil {
			return nil, cause(err)
		}
	}
	return stream, p.heard(header)
}

// Send sends batches; it waits while there are Window of them without a verdict. When it fails, whether they arrived is
// unknown. The bytes are the caller's again when it returns.
func (l *Lane) Send(batches []byte) error {
	if len(batches) > l.max {
		return fmt.Errorf("batches of %d bytes are above the bound of a message, %d", len(batches), l.max)
	}
	select {
	case l.window <- struct{}{}:
	case <-l.ctx():
		return l.broken(context.Cause(l.stream.Context()))
	}
	if l.stream.Context().Err() != nil { // both were possible
		return l.broken(context.Cause(l.stream.Context()))
	}
	l.sent++
	err := l.stream.Send(&peerpb.Batches{Number: l.sent, Batches: batches})
	if errors.Is(err, io.EOF) { // Recv has the cause, after the verdicts that came
		return fmt.Errorf("lane to %s: the other side ended it", l.p.to.ID)
	}
	if err != nil {
		return l.broken(err)
	}
	return nil
}

// Recv returns the verdict on the next batches, in the order they were sent.
func (l *Lane) Recv() (Verdict, error) {
	m, err := l.stream.Recv()
	if err != nil {
		return 0, l.broken(err)
	}
	l.got++
	if m.Number != l.got {
		return 0, l.broken(fmt.Errorf("verdict %d follows %d", m.Number, l.got-1))
	}
	v, err := verdictOf(m.Kind)
	if err != nil {
		return 0, l.broken(err)
	}
	select {
	case <-l.window:
	default:
		return 0, l.broken(errors.New("a verdict on nothing"))
	}
	l.p.n.o.Metrics.PeerForwarded(l.p.to.ID, v.String())
	return v, nil
}

// broken ends the lane, so that the other of Send and Recv fails too.
func (l *Lane) broken(err error) error {
	l.cancel()
	if errors.Is(err, io.EOF) {
		err = errors.New("the other side ended it")
	}
	return fmt.Errorf("lane to %s: %w", l.p.to.ID, cause(err))
}

// Close ends the lane; what was sent and has no verdict may or may not have arrived.
func (l *Lane) Close() error {
	l.once.Do(func() {
		l.cancel()
		l.p.used.Store(l.p.n.now())
		l.p.lanes.Add(-1)
	})
	return nil
}
