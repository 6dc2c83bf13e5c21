package edged

import (
	"context"

	"iop/edged/adminapi"
	"iop/fsm"
)

// drain stops new leases of a node or a provider, or allows them again. The edges that the node is linked to tell it. false:
// there is none of that name.
func (d *Daemon) drain(ctx context.Context, c *fsm.Drain) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, applyWait)
	defer cancel()
	out, err := d.store.Do(ctx, c)
	if err != nil {
		return false, unavailable(err)
	}
	return out.Code != fsm.Unknown, nil
}

// evict takes a waiter out of the queue, whichever edge's it is.
func (d *Daemon) evict(ctx context.Context, id fsm.RequestID) (fsm.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, applyWait)
	defer cancel()
	out, err := d.store.Do(ctx, &fsm.Evict{Request: id})
	if err != nil {
		return out, unavailable(err)
	}
	return out, nil
}

// backend asks a node what the backend of a provider tells of itself.
func (d *Daemon) backend(ctx context.Context, node fsm.NodeID, provider fsm.ProviderID) *adminapi.Backend {
	s, err := d.links.Load().Look(ctx, node, provider)
	if err != nil {
		return &adminapi.Backend{Error: err.Error()}
	}
	return &adminapi.Backend{Numbers: s.Numbers, Words: s.Words, Models: s.Models, Sources: s.Sources, Error: s.Error}
}
