package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"iop/fsm"
)

// ErrLevel says that not every replica is known to understand the command yet; it had no effect.
var ErrLevel = errors.New("the cluster does not have the feature level for this yet")

// understood refuses a command that not every replica may be able to read. One that is alone raises the level when it
// first uses something new, so that until then an older version can read its directory.
func (s *Store) understood(cmd fsm.Command) error {
	need := levelOf(cmd)
	if need <= s.replica.level.Load() {
		return nil
	}
	if s.group != nil {
		return ErrLevel
	}
	return s.queue.put(s.plain, &fsm.RaiseLevel{Level: need}, nobody{}, true)
}

// Level returns the highest feature level that can be proposed: that of the state, or any if there is no other replica.
func (s *Store) Level() uint32 {
	if s.group == nil {
		return levelMax
	}
	return max(s.replica.level.Load(), fsm.LevelFirst)
}

// raise proposes a feature level, unless the state has it.
func (s *Store) raise(ctx context.Context, level uint32) error {
	if s.replica.level.Load() >= level {
		return nil
	}
	if _, err := s.Do(ctx, &fsm.RaiseLevel{Level: level}); err != nil {
		return fmt.Errorf("raise the feature level to %d: %w", level, err)
	}
	s.logger.Info("feature level raised", "level", level)
	return nil
}

// raiseLevel proposes the newest feature level that every member was seen with. It is the leader's.
func (g *group) raiseLevel(members []Member) {
	now := g.store.replica.level.Load()
	if now >= g.options.LevelMax || time.Since(g.askedAt) < lookEach {
		return
	}
	g.askedAt = time.Now()
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
	if err := g.store.raise(ctx, top); err != nil {
		g.logger.Warn("later", "error", err)
	}
}
