package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTwin says that another process has the same replica id, with another directory: one of the two is a copy. It votes
// and confirms without knowing what the other one did, so only one may be of the cluster.
var ErrTwin = errors.New("two processes have one replica id")

// twinLooks is how often both addresses have to answer as two processes would.
const twinLooks = 2

// twin tells whether a replica that says it has moved runs at its known address all the same, in another process. A single
// one that is reached at both answers the same at both: it does not know less at one of them, nor has it a leader there
// only.
func (g *group) twin(ctx context.Context, known, moved Member) error {
	stand := func(at Member) (Standing, bool) {
		ctx, cancel := context.WithTimeout(ctx, transportTimeout)
		defer cancel()
		s, err := g.options.Network.Standing(ctx, at)
		return s, err == nil && s.ID == at.ID && s.Cluster == g.store.Cluster()
	}
	for range twinLooks {
		before, ok := stand(known)
		if !ok {
			return nil
		}
		there, ok := stand(moved)
		if !ok {
			return fmt.Errorf("join: %s answers at %s, and not at %s; is the new address right?", known.ID, known.Address, moved.Address)
		}
		after, ok := stand(known)
		if !ok || there.Applied >= before.Applied && (there.Leader != "" || before.Leader == "" || after.Leader == "") {
			return nil
		}
		select {
		case <-time.After(askEach):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%w: %s runs at %s, and at %s with an older state; stop the one that is a copy of the other's directory, and give it an id and an empty directory of its own",
		ErrTwin, known.ID, known.Address, moved.Address)
}
