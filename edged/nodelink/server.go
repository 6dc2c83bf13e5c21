package nodelink

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"iop/proto/nodepb"
)

// frameMax bounds a control frame in bytes; the largest is a configuration payload.
const frameMax = 4 << 20

// service is nodepb's one call as a function, so that no context has to be stored.
type service struct {
	nodepb.UnimplementedNodeLinkServer
	serve func(stream) error
}

func (s service) Link(st stream) error { return s.serve(st) }

func newServer(serve func(stream) error, o Options) *grpc.Server {
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(frameMax),
		grpc.MaxConcurrentStreams(4),
		grpc.ConnectionTimeout(o.HandshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: 2 * o.HandshakeTimeout, // connections without a link
			Time:              30 * time.Second,
			Timeout:           10 * time.Second,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	nodepb.RegisterNodeLinkServer(s, service{serve: serve})
	return s
}
