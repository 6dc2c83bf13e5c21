package nodelink

import (
	"time"

	"iop/fsm"
)

// LinkStatus is a link as operators see it.
type LinkStatus struct {
	Node       fsm.NodeID
	Generation fsm.Generation
	Ready      bool
	Closing    bool // the node said goodbye
	Version    string
	Platform   string
	Remote     string
	Revision   uint64        // of the configuration that the node holds
	RefreshErr string        // why the node refused the last pushed configuration; empty = it did not
	RTT        time.Duration // of the last heartbeat; 0 = not measured yet
	Idle       int           // data connections
	Busy       int
	Runs       int
}
