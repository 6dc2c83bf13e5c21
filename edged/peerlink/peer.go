package peerlink

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"iop/proto/peerpb"
)

// peer is another replica at one address, and the connection to it.
type peer struct {
	n     *Network
	to    Member
	conn  *grpc.ClientConn
	calls peerpb.PeerLinkClient
	quit  context.CancelFunc // ends watch
	used  atomic.Int64       // Network.now of the last call
	lanes atomic.Int64       // open

	mu   sync.Mutex
	line *line // newest connection
	up   bool  // answered last time
	said string
}

// peer returns the link to a member, made at the first need and anew if its address changed.
func (n *Network) peer(to Member) (*peer, error) {
	if to.ID == n.o.ID {
		return nil, refused("this is replica %s itself", to.ID)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	if p := n.peers[to.ID]; p != nil {
		if p.to.Address == to.Address {
			p.used.Store(n.now())
			return p, nil
		}
		p.end()
	}
	p := &peer{n: n, to: to}
	conn, err := grpc.NewClient("passthrough:///"+to.Address, p.dialling()...)
	if err != nil {
		return nil, fmt.Errorf("address of replica %s: %w", to.ID, err)
	}
	p.conn, p.calls = conn, peerpb.NewPeerLinkClient(conn)
	p.used.Store(n.now())
	ctx, quit := context.WithCancel(context.Background())
	p.quit = quit
	n.peers[to.ID] = p
	n.over.Go(func() { p.watch(ctx) })
	return p, nil
}

func (p *peer) dialling() []grpc.DialOption {
	o := &p.n.o
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), // TLS is ours: connect
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.connect(ctx) }),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: o.BackoffMin, Multiplier: 1.6, Jitter: 0.2, MaxDelay: o.BackoffMax},
			MinConnectTimeout: 2 * o.HandshakeTimeout, // ours ends first, and with the cause
		}),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxMessage), grpc.MaxCallSendMsgSize(o.MaxMessage)),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0), // watch lets go
		grpc.WithUnaryInterceptor(p.call),
	}
}

func (p *peer) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.n.o.HandshakeTimeout)
	defer cancel()
	conn, raw, err := p.n.dial(ctx, p.to, peerpb.ALPNCalls)
	if err != nil {
		return nil, p.n.explain(err)
	}
	l := &line{Conn: conn, raw: raw, p: p}
	l.heard.Store(p.n.now())
	if p.n.o.TLS != nil {
		if err := l.listen(ctx); err != nil {
			_ = raw.Close()
			return nil, err
		}
	}
	p.mu.Lock()
	p.line = l
	p.mu.Unlock()
	return l, nil
}

// call says hello on each call, bounds it, and checks who answers.
func (p *peer) call(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, p.n.callTime(method))
	defer cancel()
	ctx, err := p.say(ctx)
	if err != nil {
		return err
	}
	var header metadata.MD
	if err := invoke(ctx, method, req, reply, c, append(opts, grpc.Header(&header))...); err != nil {
		return cause(err)
	}
	return p.heard(header)
}

// slowTimes is how many CallTimeouts a call may take that waits for the log or an election.
const slowTimes = 5

func (n *Network) callTime(method string) time.Duration {
	switch method {
	case peerpb.PeerLink_Change_FullMethodName, peerpb.PeerLink_Digest_FullMethodName:
		return slowTimes * n.o.CallTimeout
	}
	return n.o.CallTimeout
}

func (p *peer) say(ctx context.Context) (context.Context, error) {
	b, err := proto.Marshal(p.n.hello(p.to.ID))
	if err != nil {
		return nil, fmt.Errorf("encode hello: %w", err)
	}
	return metadata.AppendToOutgoingContext(ctx, peerpb.HelloKey, string(b)), nil
}

func (p *peer) heard(header metadata.MD) error {
	h, err := helloOf(header.Get(peerpb.HelloKey))
	if err != nil {
		return err
	}
	return p.n.agrees(h, p.to.ID)
}

// end lets go of the peer; calls and lanes on it fail. The caller holds the Network's lock.
func (p *peer) end() {
	p.quit()
	_ = p.conn.Close()
}

// cut closes the connection if nothing was heard on it for a PingTimeout.
func (p *peer) cut() {
	p.mu.Lock()
	l := p.line
	p.mu.Unlock()
	if l != nil && p.n.now()-l.heard.Load() >= int64(p.n.o.PingTimeout) {
		_ = l.raw.Close()
	}
}

// idle tells whether nobody has used the peer for an IdleTimeout; then it is out of the Network.
func (p *peer) idle() bool {
	if p.lanes.Load() > 0 || p.n.now()-p.used.Load() < int64(p.n.o.IdleTimeout) {
		return false
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.lanes.Load() > 0 || p.n.now()-p.used.Load() < int64(p.n.o.IdleTimeout) {
		return false
	}
	if p.n.peers[p.to.ID] == p {
		delete(p.n.peers, p.to.ID)
	}
	p.end()
	return true
}

// watch pings the peer until it is let go.
func (p *peer) watch(ctx context.Context) {
	defer p.n.gone(p)
	tick := time.NewTicker(p.n.o.PingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p.idle() {
			return
		}
		p.ping(ctx)
	}
}
