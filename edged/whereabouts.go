package edged

import (
	"context"
	"maps"
	"time"

	"iop/fsm"
	"iop/storage"
)

// whereabouts tell where nodes reach the edges of the cluster: the members, as the log has them, with the addresses that
// each has put into the state.
type whereabouts struct{ store *storage.Store }

// Edges implements nodelink.Members.
func (w whereabouts) Edges() (map[fsm.EdgeID]string, uint64) {
	addresses, index := map[fsm.EdgeID]string{}, uint64(0)
	members := w.store.Members()
	w.store.View(func(m *fsm.Machine) {
		index = m.Index()
		for _, member := range members {
			if a := m.Address(fsm.EdgeID(member.ID)); a != "" {
				addresses[fsm.EdgeID(member.ID)] = a
			}
		}
	})
	return addresses, index
}

// whereaboutsPeriod is how often the edge looks whether a member came, went or moved.
const whereaboutsPeriod = time.Second

// keepWhereabouts puts this edge's address into the state and tells the nodes when an edge came, went or moved, until ctx
// ends.
func (d *Daemon) keepWhereabouts(ctx context.Context) {
	ticker := time.NewTicker(whereaboutsPeriod)
	defer ticker.Stop()
	w := whereabouts{d.store}
	var told map[fsm.EdgeID]string
	for {
		d.announceAddress(ctx)
		if now, _ := w.Edges(); !maps.Equal(now, told) {
			told = now
			d.links.Load().MembersChanged()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// announceAddress has the state say where nodes reach this edge, once all replicas can read that.
func (d *Daemon) announceAddress(ctx context.Context) {
	c := &fsm.Announce{Address: d.nodeAddress()}
	var right bool
	d.store.View(func(m *fsm.Machine) {
		right = m.Level() < fsm.LevelOf(c) || m.Address(d.tenure.edge) == c.Address
	})
	x, _, _ := d.tenure.current()
	if right || x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, whereaboutsPeriod)
	defer cancel()
	if o, err := x.Do(ctx, c); err != nil || o.Code != fsm.Done {
		d.log.Debug("the edge's address is not announced yet", "address", c.Address, "outcome", o.Code.String(), "error", err)
	}
}
