package nodelink

import (
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// checked answers a registration that only asks whether it would be accepted. Nothing is commanded, and a link that the
// node has is not disturbed.
func (l *Links) checked(reg *nodepb.Register, entry NodeEntry) *nodepb.EdgeFrame {
	return &nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Checked{Checked: &nodepb.Checked{
		Edge: string(l.o.Edge), Cluster: l.o.ClusterID, Version: l.o.Version,
		ProtocolMin: nodepb.ProtocolMin, ProtocolMax: nodepb.ProtocolMax,
		Revision: entry.Revision, Payload: entry.Payload,
		Connected: l.linked(fsm.NodeID(reg.Node)) != nil,
		UnixMs:    time.Now().UnixMilli(),
	}}}
}
