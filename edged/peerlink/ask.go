package peerlink

import (
	"context"
	"fmt"

	"iop/proto/peerpb"
)

// Standing asks a replica how it stands.
func (n *Network) Standing(ctx context.Context, to Member) (Standing, error) {
	p, err := n.peer(to)
	if err != nil {
		return Standing{}, asking("standing", to, err)
	}
	a, err := p.calls.Standing(ctx, &peerpb.StandingRequest{})
	if err != nil {
		return Standing{}, asking("standing", to, err)
	}
	return standingOf(a), nil
}

// ReadIndex asks a replica, which is taken to be the leader, for an index to read at. Errors: ErrNotLeader,
// ErrOverloaded, and those of the network.
func (n *Network) ReadIndex(ctx context.Context, to Member) (index, term uint64, err error) {
	p, err := n.peer(to)
	if err != nil {
		return 0, 0, asking("read index", to, err)
	}
	a, err := p.calls.ReadIndex(ctx, &peerpb.ReadIndexRequest{})
	if err != nil {
		return 0, 0, asking("read index", to, err)
	}
	return a.Index, a.Term, nil
}

// Join asks a replica, which is taken to be the leader, to take self in. Errors as of ReadIndex.
func (n *Network) Join(ctx context.Context, to, self Member, cluster string) error {
	p, err := n.peer(to)
	if err != nil {
		return asking("join", to, err)
	}
	if _, err := p.calls.Join(ctx, &peerpb.JoinRequest{Self: memberMessage(self), Cluster: cluster}); err != nil {
		return asking("join", to, err)
	}
	return nil
}

// Change asks a replica, which is taken to be the leader, to change the membership. Errors as of ReadIndex.
func (n *Network) Change(ctx context.Context, to Member, c Change) error {
	p, err := n.peer(to)
	if err != nil {
		return asking("change", to, err)
	}
	if _, err := p.calls.Change(ctx, &peerpb.ChangeRequest{Remove: c.Remove, Transfer: c.Transfer, To: c.To}); err != nil {
		return asking("change", to, err)
	}
	return nil
}

// Digest asks a replica for the digest of its state right after a mark in the log.
func (n *Network) Digest(ctx context.Context, to Member, mark [32]byte) (index uint64, digest [32]byte, err error) {
	p, err := n.peer(to)
	if err != nil {
		return 0, digest, asking("digest", to, err)
	}
	a, err := p.calls.Digest(ctx, &peerpb.DigestRequest{Mark: mark[:]})
	if err != nil {
		return 0, digest, asking("digest", to, err)
	}
	if len(a.Digest) != len(digest) {
		return 0, digest, asking("digest", to, fmt.Errorf("%d bytes, not %d", len(a.Digest), len(digest)))
	}
	return a.Index, [32]byte(a.Digest), nil
}

func asking(what string, to Member, err error) error {
	return fmt.Errorf("%s of %s at %s: %w", what, to.ID, to.Address, err)
}
