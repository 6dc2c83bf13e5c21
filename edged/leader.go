package edged

import (
	"errors"

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
