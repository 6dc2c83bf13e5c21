package storage

import (
	"context"
	"errors"

	"iop/fsm"
)

// ErrLevel: not every replica is known to understand the command yet; it had no effect.
var ErrLevel = errors.New("the cluster does not have the feature level for this yet")

// raiseLevel proposes the newest feature level that every member was seen with. It is the leader's.
func (g *group) raiseLevel(members []Member) {
	now := g.store.replica.level.Load()
	if now >= g.options.LevelMax {
		return
	}
	top := g.options.LevelMax
	for _, m := range members {
		if m.ID == g.store.options.Replica {
			continue
		}
		ctx, cancel := context.WithTimeout(g.ctx, transportTimeout)
		s, err := g.options.Network.Standing(ctx, m)
		cancel()
		if err != nil || s.ID != m.ID || s.Cluster != g.store.Cluster() {
			return
		}
		top = min(top, s.LevelMax)
	}
	if top <= now {
		return
	}
	ctx, cancel := context.WithTimeout(g.ctx, transportTimeout)
	defer cancel()
	if _, err := g.store.Do(ctx, &fsm.RaiseLevel{Level: top}); err != nil {
		g.logger.Warn("raise the feature level", "level", top, "error", err)
		return
	}
	g.logger.Info("feature level raised", "level", top)
}
