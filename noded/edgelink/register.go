package edgelink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"iop/proto/nodepb"
)

// register asks for a link and returns the edge's answer.
func (l *Link) register(ctx, call context.Context, hangUp func(), cc *grpc.ClientConn) (stream, *nodepb.Accepted, error) {
	stop := context.AfterFunc(ctx, hangUp)
	defer stop()
	timer := time.AfterFunc(2*l.o.DialTimeout, hangUp)
	defer timer.Stop()
	st, err := nodepb.NewNodeLinkClient(cc).Link(call)
	if err != nil {
		return nil, nil, fmt.Errorf("open the link: %w", explainOpen(err, l.o.TLS != nil))
	}
	running, empty := l.o.Runs.left()
	l.named = running
	err = st.Send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Register{Register: l.registration(running, false)}})
	if err != nil && !errors.Is(err, io.EOF) { // EOF: Recv has the cause
		return nil, nil, fmt.Errorf("register: %w", err)
	}
	f, err := st.Recv()
	switch {
	case err != nil && call.Err() != nil:
		return nil, nil, errNoAnswer
	case err != nil:
		return nil, nil, fmt.Errorf("register: %w", err)
	case f.GetAccepted() != nil:
		if p := f.GetAccepted().Protocol; p < nodepb.ProtocolMin || p > nodepb.ProtocolMax {
			return nil, nil, fmt.Errorf("the edge chose protocol %d, which this node does not speak: install a noded that matches it", p)
		}
		l.o.Runs.forget(f.GetAccepted().Edge, empty) // the registration said it
		return st, f.GetAccepted(), nil
	case f.GetRefused() != nil:
		r := f.GetRefused()
		if r.Code == "stopping" {
			return nil, nil, &byeError{reason: r.Message, after: time.Duration(r.RetryAfterMs) * time.Millisecond}
		}
		return nil, nil, &refusedError{code: r.Code, message: r.Message, cure: r.Cure}
	}
	return nil, nil, fmt.Errorf("register: %w: neither accepted nor refused", nodepb.ErrMalformed)
}
