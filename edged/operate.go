package edged

import (
	"context"

	"iop/edged/adminapi"
	"iop/fsm"
)

// drain stops new leases of a node or a provider, or allows them again, and tells the node if it is linked here. false:
// there is none of that name.
func (d *Daemon) drain(ctx context.Context, c *fsm.Drain) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, applyWait)
	defer cancel()
	out, err := d.store.Do(ctx, c)
	if err != nil {
		return false, unavailable(err)
	}
	if out.Code == fsm.Unknown {
		return false, nil
	}
	d.log.Info("drain", "node", c.Node, "provider", c.Provider, "on", c.On)
	d.links.Load().Drain(c.Node, c.Provider, c.On)
	return true, nil
}

// backend asks a node what the backend of a provider tells of itself.
func (d *Daemon) backend(ctx context.Context, node fsm.NodeID, provider fsm.ProviderID) *adminapi.Backend {
	s, err := d.links.Load().Look(ctx, node, provider)
	if err != nil {
		return &adminapi.Backend{Error: err.Error()}
	}
	return &adminapi.Backend{Numbers: s.Numbers, Words: s.Words, Models: s.Models, Sources: s.Sources, Error: s.Error}
}
