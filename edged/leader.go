package edged

import (
	"context"
	"errors"
	"time"

	"iop/storage"
)

var errNoLeader = errors.New("the cluster has no leader, as far as this edge can see")

// leader is the edge that leads the cluster as far as this one knows, "" = none.
func (d *Daemon) leader() string {
	if d.store.Role() == storage.RoleLeader {
		return d.self.ID
	}
	return d.store.Standing().Leader
}

// notReady tells why the edge takes no requests, nil if it does.
func (d *Daemon) notReady() error {
	if d.stopping.Load() {
		return errors.New("the edge is stopping")
	}
	if err := d.store.Err(); err != nil {
		return err
	}
	if x, _, _ := d.tenure.current(); x == nil {
		return errNoSession
	}
	if d.leader() == "" {
		return errNoLeader
	}
	return nil
}

// leaderLook is how often this edge looks who leads.
const leaderLook = 250 * time.Millisecond

// watchLeader counts the changes of the leader, the time without one, and jumps of the wall clock, until ctx ends.
func (d *Daemon) watchLeader(ctx context.Context) error {
	ticker := time.NewTicker(leaderLook)
	defer ticker.Stop()
	var wall wallClock
	began := time.Now()
	looked := began
	wall.look(began, 0)
	for last := d.leader(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		at := time.Now()
		if off := wall.look(at, at.Sub(began)); off != 0 {
			d.log.Warn("the wall clock has jumped; no decision reads it, certificates and the times that are shown do", "by", off.Round(time.Millisecond).String())
			d.metrics.ClockJumped()
		}
		now := d.leader()
		if now == "" {
			d.metrics.Leaderless(at.Sub(looked))
		}
		looked = at
		if now != "" && now != last {
			d.log.Info("another leader", "leader", now, "before", last)
			d.metrics.LeaderChanged()
			last = now
		}
	}
}
