package nodelink

import (
	"slices"
	"strings"
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
	Revision   uint64        // of the configuration that the node has confirmed; 0 = of none on this link
	Pushed     uint64        // of the newest that it was sent
	Refused    uint64        // newest configuration that the node would not take; 0 = none
	RefreshErr string        // why the node refused the last pushed configuration; empty = it did not
	RTT        time.Duration // of the last heartbeat; 0 = not measured yet
	Idle       int           // data connections
	Busy       int
	Runs       int
}

// Status returns the links in being, sorted by node.
func (l *Links) Status() []LinkStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]LinkStatus, 0, len(l.links))
	for _, k := range l.links {
		list = append(list, k.status())
	}
	slices.SortFunc(list, func(a, b LinkStatus) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return list
}

func (k *link) status() LinkStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	return LinkStatus{
		Node: k.node, Generation: k.generation, Ready: k.ready && !k.isLost, Closing: k.leaving,
		Version: k.version, Platform: k.platform, Remote: k.conn.Conn.RemoteAddr().String(),
		Revision: k.revision, Pushed: k.pushed, Refused: k.refused, RefreshErr: k.refreshErr, RTT: time.Duration(k.rtt.Load()),
		Idle: len(k.pool.idle), Busy: len(k.pool.busy), Runs: len(k.runs),
	}
}
