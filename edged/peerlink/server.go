package peerlink

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"iop/proto/peerpb"
)

// Flow control windows in bytes; set, so that gRPC does not probe for them.
const (
	streamWindow = 1 << 20
	connWindow   = 4 << 20
)

func newServer(n *Network) *grpc.Server {
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(n.o.MaxMessage),
		grpc.MaxConcurrentStreams(256),
		grpc.ConnectionTimeout(n.o.HandshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 2 * time.Second, Timeout: 2 * time.Second}),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			answer, err := n.receive(ctx)
			if err != nil {
				return nil, err
			}
			if err := grpc.SetHeader(ctx, answer); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
	)
	peerpb.RegisterPeerLinkServer(s, service{n: n})
	return s
}

// receive checks a call's hello and returns the header of the answer.
func (n *Network) receive(ctx context.Context) (metadata.MD, error) {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "a call without a connection")
	}
	var cert *x509.Certificate
	if a, ok := p.Addr.(callAddr); ok {
		cert = a.cert
	}
	h, err := helloOf(metadata.ValueFromIncomingContext(ctx, peerpb.HelloKey))
	if err == nil {
		err = n.welcome(h, cert)
	}
	if err != nil {
		n.complain("call refused", p.Addr, err)
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	return n.header(h.From)
}

// header is this replica's hello as metadata.
func (n *Network) header(to string) (metadata.MD, error) {
	b, err := proto.Marshal(n.hello(to))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return metadata.Pairs(peerpb.HelloKey, string(b)), nil
}

func helloOf(values []string) (*peerpb.Hello, error) {
	if len(values) != 1 {
		return nil, refused("the other side does not say which replica it is; is it another program?")
	}
	return peerpb.ParseHello([]byte(values[0]))
}

// service answers calls for the host.
type service struct {
	peerpb.UnimplementedPeerLinkServer
	n *Network
}

// Forward gives batches to the host, in order.
func (s service) Forward(st grpc.BidiStreamingServer[peerpb.Batches, peerpb.Verdict]) error {
	header, err := s.n.receive(st.Context())
	if err != nil {
		return err
	}
	if s.n.hosted() == nil {
		return fault(ErrStarting)
	}
	if err := st.SendHeader(header); err != nil {
		return err
	}
	for next := uint64(1); ; next++ {
		b, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if b.Number != next {
			return status.Errorf(codes.InvalidArgument, "batches %d follow %d", b.Number, next-1)
		}
		v := s.n.hosted().Forwarded(b.Batches)
		if err := st.Send(&peerpb.Verdict{Number: next, Kind: verdictKind(v)}); err != nil {
			return err
		}
	}
}

// Ping answers without asking anybody.
func (s service) Ping(context.Context, *peerpb.PingRequest) (*peerpb.PingAnswer, error) {
	return &peerpb.PingAnswer{}, nil
}

// Standing tells how the host stands.
func (s service) Standing(context.Context, *peerpb.StandingRequest) (*peerpb.StandingAnswer, error) {
	h := s.n.hosted()
	if h == nil {
		return nil, fault(ErrStarting)
	}
	return standingAnswer(h.Standing()), nil
}

// ReadIndex asks the host.
func (s service) ReadIndex(ctx context.Context, _ *peerpb.ReadIndexRequest) (*peerpb.ReadIndexAnswer, error) {
	h := s.n.hosted()
	if h == nil {
		return nil, fault(ErrStarting)
	}
	index, term, err := h.ReadIndex(ctx)
	if err != nil {
		return nil, fault(err)
	}
	return &peerpb.ReadIndexAnswer{Index: index, Term: term}, nil
}

// Join asks the host to take a replica in.
func (s service) Join(ctx context.Context, r *peerpb.JoinRequest) (*peerpb.JoinAnswer, error) {
	h := s.n.hosted()
	switch {
	case h == nil:
		return nil, fault(ErrStarting)
	case r.Self.GetId() == "" || r.Self.GetAddress() == "":
		return nil, status.Error(codes.InvalidArgument, "join: no id or no address")
	case r.Cluster != "" && r.Cluster != h.Cluster():
		return nil, status.Error(codes.PermissionDenied, refused("replica %s wants to join cluster %s, this is cluster %s", r.Self.Id, r.Cluster, h.Cluster()).Error())
	}
	if _, _, err := net.SplitHostPort(r.Self.Address); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "join: address %q is not host:port", r.Self.Address)
	}
	if err := h.Join(ctx, Member{ID: r.Self.Id, Address: r.Self.Address, Voter: r.Self.Voter}); err != nil {
		return nil, fault(err)
	}
	return &peerpb.JoinAnswer{}, nil
}

// Change asks the host to change the membership.
func (s service) Change(ctx context.Context, r *peerpb.ChangeRequest) (*peerpb.ChangeAnswer, error) {
	h := s.n.hosted()
	switch {
	case h == nil:
		return nil, fault(ErrStarting)
	case (r.Remove != "") == r.Transfer:
		return nil, status.Error(codes.InvalidArgument, "change: it says not one thing to do")
	}
	if err := h.Change(ctx, Change{Remove: r.Remove, Transfer: r.Transfer, To: r.To}); err != nil {
		return nil, fault(err)
	}
	return &peerpb.ChangeAnswer{}, nil
}

// Digest asks the host.
func (s service) Digest(ctx context.Context, r *peerpb.DigestRequest) (*peerpb.DigestAnswer, error) {
	h := s.n.hosted()
	if h == nil {
		return nil, fault(ErrStarting)
	}
	var mark [32]byte
	if copy(mark[:], r.Mark) != len(mark) || len(r.Mark) != len(mark) {
		return nil, status.Errorf(codes.InvalidArgument, "digest: a mark has %d bytes, not %d", len(mark), len(r.Mark))
	}
	index, digest, err := h.Digest(ctx, mark)
	if err != nil {
		return nil, fault(err)
	}
	return &peerpb.DigestAnswer{Index: index, Digest: digest[:]}, nil
}
