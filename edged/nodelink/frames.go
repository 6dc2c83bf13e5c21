package nodelink

import (
	"slices"

	"iop/fsm"
	"iop/proto/nodepb"
)

// handle acts on a frame of the node. It never blocks.
func (k *link) handle(f *nodepb.NodeFrame) {
	switch f := f.Frame.(type) {
	case *nodepb.NodeFrame_Heartbeat:
		k.heartbeat(f.Heartbeat)
		if f.Heartbeat.Ping {
			k.beat(false)
		}
	case *nodepb.NodeFrame_RunEnded:
		k.runEnded(f.RunEnded)
	case *nodepb.NodeFrame_Ready:
		k.isReady(f.Ready)
	case *nodepb.NodeFrame_Health:
		k.health(f.Health)
	case *nodepb.NodeFrame_LinkReport:
		k.report(f.LinkReport)
	case *nodepb.NodeFrame_RefreshAck:
		k.refreshed(f.RefreshAck)
	case *nodepb.NodeFrame_Goodbye:
		k.goodbye(f.Goodbye)
	case *nodepb.NodeFrame_BackendStatus:
		if !k.looks.told(f.BackendStatus) {
			k.links.o.Metrics.FrameDropped("backend_status")
		}
	default:
		k.links.o.Metrics.FrameDropped("unknown")
	}
}

func (k *link) health(h *nodepb.Health) {
	state := fsm.Healthy
	if h.State == nodepb.Health_STATE_DEGRADED {
		state = fsm.Degraded
	}
	k.setHealth(h.Provider, state, h.Cause)
}

func (k *link) setHealth(provider string, state fsm.Health, cause string) {
	ok := k.proposals.setHealth(fsm.SetHealth{
		Node: k.node, Generation: k.generation, Provider: fsm.ProviderID(provider),
		Health: state, Cause: cause[:min(len(cause), fsm.CauseMax)],
	})
	if !ok {
		k.links.o.Metrics.FrameDropped("health")
	}
}

func (k *link) report(r *nodepb.LinkReport) {
	running := make([]fsm.LeaseID, len(r.Running))
	for i, id := range r.Running {
		running[i] = fsm.LeaseID(id)
	}
	ok := k.proposals.setReport(fsm.LinkReport{Node: k.node, Generation: fsm.Generation(r.Generation), Running: running})
	if !ok {
		k.links.o.Metrics.FrameDropped("report")
	}
}

// goodbye begins the orderly end: no new run, and the end at once if none is running, else with the last one's. Until
// then its providers are degraded, so that the machine grants nothing that would be refused.
func (k *link) goodbye(g *nodepb.Goodbye) {
	k.mu.Lock()
	k.leaving = true
	running := len(k.runs)
	providers := slices.Clone(k.providers)
	k.mu.Unlock()
	k.links.o.Logger.Info("link: the node says goodbye", "node", k.node, "generation", k.generation,
		"cause", g.Reason, "running", running)
	if running == 0 {
		k.lose(fsm.ReasonGoodbye, true, true)
		return
	}
	for _, id := range providers {
		k.setHealth(id, fsm.Degraded, "the node stops")
	}
}
