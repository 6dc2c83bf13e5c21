package edged

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"iop/configs"
	"iop/edged/peerlink"
	"iop/storage"
)

// clusterAddress is what the cluster listener listens on, "" if there is none: a single edge that nobody could reach
// there, or only in plain text that nobody asked for, needs none.
func clusterAddress(s *configs.Self) string {
	address := s.Listen.Cluster
	host, _, err := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host)
	secure := s.TLS.Cert != "" && (s.Cluster.CA != "" || s.TLS.ClientCA != "")
	switch {
	case len(s.Cluster.Peers) > 0:
		return address
	case address == "" || err != nil:
		return ""
	case (host == "" || ip.IsUnspecified()) && s.Advertise.Cluster == "":
		return "" // the others could not be told where to find it
	case secure || s.Cluster.Plaintext || s.TLS.Cert == "" && (host == "localhost" || ip.IsLoopback()):
		return address
	}
	return ""
}

// peers is this edge's link to the other replicas while it runs.
type peers struct {
	net    *peerlink.Network
	stop   context.CancelFunc
	done   chan struct{} // closed when it is over
	failed chan error    // why it ended by itself
}

// linkPeers starts the cluster listener; nil if there is none. It has to outlive the store.
func (d *Daemon) linkPeers() (*peers, error) {
	if d.ports.cluster == nil {
		return nil, nil
	}
	security, err := peerTLS(d.self)
	if err != nil {
		return nil, err
	}
	n, err := peerlink.New(peerlink.Options{
		Listener: d.ports.cluster, ID: d.self.ID, Version: d.o.Version, TLS: security, Logger: d.log, Metrics: d.metrics,
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &peers{net: n, stop: stop, done: make(chan struct{}), failed: make(chan error, 1)}
	go func() {
		defer close(p.done)
		if err := n.Run(ctx); err != nil {
			p.failed <- err
		}
	}()
	return p, nil
}

// close ends all links and waits for it.
func (p *peers) close() {
	if p != nil {
		p.stop()
		<-p.done
	}
}

// broken tells why the listener ended by itself; without one it never does.
func (p *peers) broken() <-chan error {
	if p == nil {
		return nil
	}
	return p.failed
}

// membership is what the store needs to be one of several; nil = it is alone.
func (d *Daemon) membership() *storage.Cluster {
	if d.peers == nil {
		return nil
	}
	c := &storage.Cluster{
		Address: d.advertisedCluster(), Network: network{d.peers.net}, SessionTTL: d.self.Cluster.SessionTTLMS.Duration(),
		Serve: func(s *storage.Store) { d.peers.net.Attach(host{s}) },
	}
	for _, p := range d.self.Cluster.Peers {
		c.Peers = append(c.Peers, storage.Member{ID: p.ID, Address: p.Address, Voter: true})
	}
	return c
}

// advertisedCluster is where the others reach this replica. The list of peers comes first: all have the same.
func (d *Daemon) advertisedCluster() string {
	for _, p := range d.self.Cluster.Peers {
		if p.ID == d.self.ID {
			return p.Address
		}
	}
	if d.self.Advertise.Cluster != "" {
		return d.self.Advertise.Cluster
	}
	return d.ports.cluster.Addr().String()
}

// network lets the store reach the other replicas.
type network struct{ *peerlink.Network }

func (n network) DialRaft(ctx context.Context, to storage.Member) (net.Conn, error) {
	return n.Network.DialRaft(ctx, peerlink.Member(to))
}

func (n network) Forward(ctx context.Context, to storage.Member) (storage.Lane, error) {
	l, err := n.Network.Forward(ctx, peerlink.Member(to))
	if err != nil {
		return nil, fromPeer(err)
	}
	return lane{l}, nil
}

func (n network) Standing(ctx context.Context, to storage.Member) (storage.Standing, error) {
	s, err := n.Network.Standing(ctx, peerlink.Member(to))
	if err != nil {
		return storage.Standing{}, fromPeer(err)
	}
	out := storage.Standing{
		ID: s.ID, Cluster: s.Cluster, Leader: s.Leader, LeaderAddress: s.LeaderAddress, Role: s.Role, Empty: s.Empty, Applied: s.Applied,
		Last: s.Last, Term: s.Term, Level: s.Level, LevelMax: s.LevelMax, Version: s.Version,
	}
	for _, m := range s.Members {
		out.Members = append(out.Members, storage.Member(m))
	}
	return out, nil
}

func (n network) ReadIndex(ctx context.Context, to storage.Member) (index, term uint64, err error) {
	index, term, err = n.Network.ReadIndex(ctx, peerlink.Member(to))
	return index, term, fromPeer(err)
}

func (n network) Join(ctx context.Context, to, self storage.Member, cluster string) error {
	return fromPeer(n.Network.Join(ctx, peerlink.Member(to), peerlink.Member(self), cluster))
}

func (n network) Change(ctx context.Context, to storage.Member, c storage.Change) error {
	return fromPeer(n.Network.Change(ctx, peerlink.Member(to), peerlink.Change(c)))
}

func (n network) Digest(ctx context.Context, to storage.Member, mark storage.Mark) (index uint64, digest [32]byte, err error) {
	index, digest, err = n.Network.Digest(ctx, peerlink.Member(to), mark)
	return index, digest, fromPeer(err)
}

// lane is a stream of batches to the leader.
type lane struct{ *peerlink.Lane }

func (l lane) Recv() (storage.Verdict, error) {
	v, err := l.Lane.Recv()
	return storage.Verdict(v), err
}

// host lets the other replicas ask the store.
type host struct{ store *storage.Store }

func (h host) Cluster() string { return h.store.Cluster() }

func (h host) Forwarded(batches []byte) peerlink.Verdict {
	return peerlink.Verdict(h.store.Forwarded(batches))
}

func (h host) ReadIndex(ctx context.Context) (index, term uint64, err error) {
	index, term, err = h.store.ReadIndex(ctx)
	return index, term, toPeer(err)
}

func (h host) Join(ctx context.Context, m peerlink.Member) error {
	return toPeer(h.store.Join(ctx, storage.Member(m)))
}

func (h host) Change(ctx context.Context, c peerlink.Change) error {
	return toPeer(h.store.Changed(ctx, storage.Change(c)))
}

func (h host) Digest(ctx context.Context, mark [32]byte) (index uint64, digest [32]byte, err error) {
	index, digest, err = h.store.Digest(ctx, mark)
	return index, digest, toPeer(err)
}

func (h host) Standing() peerlink.Standing {
	s := h.store.Standing()
	out := peerlink.Standing{
		ID: s.ID, Cluster: s.Cluster, Leader: s.Leader, LeaderAddress: s.LeaderAddress, Role: s.Role, Empty: s.Empty, Applied: s.Applied,
		Last: s.Last, Term: s.Term, Level: s.Level, LevelMax: s.LevelMax, Version: s.Version,
	}
	for _, m := range s.Members {
		out.Members = append(out.Members, peerlink.Member(m))
	}
	return out
}

// fromPeer says in the store's words what another replica answered.
func fromPeer(err error) error {
	switch {
	case errors.Is(err, peerlink.ErrNotLeader):
		return fmt.Errorf("%w: %w", storage.ErrNotLeader, err)
	case errors.Is(err, peerlink.ErrOverloaded):
		return fmt.Errorf("%w: %w", storage.ErrOverloaded, err)
	case errors.Is(err, peerlink.ErrTwin):
		return fmt.Errorf("%w: %w", storage.ErrTwin, err)
	case errors.Is(err, peerlink.ErrUnreachable):
		return unreachable{err}
	}
	return err
}

// unreachable is a storage.ErrNoAnswer in the words of its cause.
type unreachable struct{ error }

func (u unreachable) Unwrap() []error { return []error{u.error, storage.ErrNoAnswer} }

// toPeer says in peerlink's words what the store answered.
func toPeer(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotLeader), errors.Is(err, storage.ErrNoLeader):
		return fmt.Errorf("%w: %w", peerlink.ErrNotLeader, err)
	case errors.Is(err, storage.ErrOverloaded):
		return fmt.Errorf("%w: %w", peerlink.ErrOverloaded, err)
	case errors.Is(err, storage.ErrTwin):
		return fmt.Errorf("%w: %w", peerlink.ErrTwin, err)
	}
	return err
}
