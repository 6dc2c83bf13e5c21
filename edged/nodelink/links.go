package nodelink

import (
	"context"

	"iop/fsm"
	"iop/proto/nodepb"
)

// Links are all links of this edge.
type Links struct {
	o Options
}

// New returns Links that Run brings to life. It fails only if a required option is missing.
func New(o Options) (*Links, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Links{o: o}, nil
}

// Run accepts nodes until ctx ends, then closes every link and waits for all that it started. It returns nil after ctx
// ended, else why the listener failed.
func (l *Links) Run(ctx context.Context) error { panic("being written") }

// Exchange carries one run over the link that x.Grant names. It returns when the run is really over: by its trailers,
// by the node's word, because the link is lost, or because the node said nothing for FenceTimeout after a cancel. The
// end of ctx cancels the run.
func (l *Links) Exchange(ctx context.Context, x *Exchange, a Answer) End { panic("being written") }

// Effects takes what the machine did to links without their asking. It does not block.
func (l *Links) Effects(effects []fsm.Effect) { panic("being written") }

// Goodbye ends all links in an orderly way: nodes are told, the links are fenced, nothing new is accepted. It returns
// when that is done or ctx ends. Call it when no exchange is wanted any more.
func (l *Links) Goodbye(ctx context.Context) { panic("being written") }

// Push sends a configuration to all ready links; the nodes' answers show in Status.
func (l *Links) Push(revision uint64, payloadFor func(fsm.NodeID) *nodepb.NodeConfigPayload) {
	panic("being written")
}

// Status returns the links in being, sorted by node.
func (l *Links) Status() []LinkStatus { panic("being written") }
