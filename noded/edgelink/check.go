package edgelink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"iop/proto/nodepb"
)

// Check is what an edge says to a registration that only asks. Nothing at the edge or the cluster has changed by it, and
// a link that the node has goes on.
type Check struct {
	Refused *nodepb.Refused // nil: it would have been accepted, see Checked
	Checked *nodepb.Checked
	// Old: the edge knows no checks. It would have registered the node, so nothing more was asked.
	Old bool
}

// Check connects to the edge, TLS included, and asks whether it would take this node. The error tells at which step it
// failed: dial edge, TLS with edge, or the answer.
func (l *Link) Check(ctx context.Context) (*Check, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*l.o.DialTimeout)
	defer cancel()
	conn, raw, err := l.dial(ctx) // alone first: gRPC would hide at which step it failed
	if err != nil {
		return nil, err
	}
	err = verdict(conn)
	_ = raw.Close()
	_ = conn.Close()
	if err != nil {
		return nil, fmt.Errorf("TLS with edge: %w", explainOpen(err, true))
	}
	cc, err := l.control()
	if err != nil {
		return nil, fmt.Errorf("prepare the link: %w", err)
	}
	defer func() { _ = cc.Close() }()
	st, err := nodepb.NewNodeLinkClient(cc).Link(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the link: %w", explainOpen(err, l.o.TLS != nil))
	}
	err = st.Send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Register{Register: l.registration(nil, true)}})
	if err != nil && !errors.Is(err, io.EOF) { // EOF: Recv has the cause
		return nil, fmt.Errorf("ask: %w", err)
	}
	f, err := st.Recv()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, errNoAnswer
	case err != nil:
		return nil, fmt.Errorf("ask: %w", err)
	case f.GetRefused() != nil:
		return &Check{Refused: f.GetRefused(), Old: f.GetRefused().Code == "malformed"}, nil
	case f.GetChecked() != nil:
		return &Check{Checked: f.GetChecked()}, nil
	}
	return nil, fmt.Errorf("ask: %w: neither checked nor refused", nodepb.ErrMalformed)
}

// registration is the node's request for a link, or the question whether it would get one. A check names no instance: an
// edge that knows no checks refuses it as malformed, rather than take it for the node and end the node's link.
func (l *Link) registration(running []uint64, check bool) *nodepb.Register {
	r := &nodepb.Register{
		Node: l.o.NodeID, Token: l.o.Token, Instance: l.o.Runs.instance,
		ProtocolMin: nodepb.ProtocolMin, ProtocolMax: nodepb.ProtocolMax,
		Version: l.o.Version, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Running: running, Check: check,
	}
	if check {
		r.Instance = 0
	}
	return r
}

// Skew is how far the edge's clock is ahead of this one's, by an answer that took some milliseconds.
func (c *Check) Skew(now time.Time) time.Duration {
	if c.Checked == nil || c.Checked.UnixMs == 0 {
		return 0
	}
	return time.UnixMilli(c.Checked.UnixMs).Sub(now)
}

// verdictWait is how long an edge is given to say that it does not take a certificate.
const verdictWait = 300 * time.Millisecond

// verdict returns what the edge says of the node's certificate if it does not like it. In TLS 1.3 that comes after the
// handshake, and a link that writes at once may find its connection closed before it has read why.
func verdict(conn net.Conn) error {
	if _, secure := conn.(*tls.Conn); !secure {
		return nil
	}
	_ = conn.SetReadDeadline(time.Now().Add(verdictWait))
	var alert *net.OpError
	if _, err := conn.Read(make([]byte, 1)); errors.As(err, &alert) && alert.Op == "remote error" {
		return err
	}
	return nil // silence, or the first of what the edge says
}
