package nodelink

import (
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// Push sends every link its node's part of a configuration. It does not block. A link that is not ready yet becomes so only
// when its node has confirmed the newest; a run that is begun from now on says that it needs this one, and the node holds it
// until it has it. What the nodes have confirmed shows in Status. A node that payloadFor knows nothing of gets nothing.
func (l *Links) Push(revision uint64, payloadFor func(fsm.NodeID) *nodepb.NodeConfigPayload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, k := range l.links {
		if p := payloadFor(node); p != nil {
			k.push(revision, p)
		}
	}
}

// SetFenceTimeout changes Options.FenceTimeout for waits that begin from now on; 0 or less is left out.
func (l *Links) SetFenceTimeout(d time.Duration) {
	if d > 0 {
		l.fenceTimeout.Store(int64(d))
	}
}

// News is closed when Status may tell of a configuration that was confirmed, or of a link that came or went.
func (l *Links) News() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}

// tell wakes those who wait for news. The caller holds mu.
func (l *Links) tell() {
	close(l.news)
	l.news = make(chan struct{})
}

// catchUp pushes what a registration's answer was too early for: the configuration may have changed after the answer was
// made and before the link was in the list that Push walks. The caller holds mu.
func (l *Links) catchUp(k *link) {
	if e, ok := l.o.Catalog.Node(k.node); ok && e.Revision > k.sent() {
		k.push(e.Revision, e.Payload)
	}
}

func (k *link) sent() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pushed
}

func (k *link) push(revision uint64, p *nodepb.NodeConfigPayload) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holds(revision, p)
	k.sendLocked(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_ConfigRefresh{ConfigRefresh: &nodepb.NodeConfigRefreshRequest{
		Revision: revision, Payload: p,
	}}})
}

// holds notes what the node is being told. The caller holds mu, or has the link to itself.
func (k *link) holds(revision uint64, p *nodepb.NodeConfigPayload) {
	k.pushed = revision
	k.providers = k.providers[:0]
	for _, x := range p.GetProviders() {
		k.providers = append(k.providers, x.Id)
	}
}

// isReady takes the node's word that it has the configuration of its registration. If a newer one is on its way, the link
// is ready when that is confirmed.
func (k *link) isReady(r *nodepb.Ready) {
	if r.Generation != uint64(k.generation) {
		k.links.o.Metrics.FrameDropped("ready")
		return
	}
	k.mu.Lock()
	k.saidReady = true
	k.revision = max(k.revision, k.began)
	k.mu.Unlock()
	k.confirmed()
}

// refreshed takes the node's answer to a push. One that refuses keeps its old configuration, and its link.
func (k *link) refreshed(a *nodepb.RefreshAck) {
	k.mu.Lock()
	k.refreshErr = a.Error
	if a.Error == "" {
		k.revision = max(k.revision, a.Revision)
	} else {
		k.links.o.Logger.Error("link: the node refuses the configuration", "node", k.node, "generation", k.generation,
			"revision", a.Revision, "cause", a.Error)
		k.refused = max(k.refused, a.Revision)
	}
	k.mu.Unlock()
	k.confirmed()
}

// confirmed acts on a configuration that the node has, or has refused.
func (k *link) confirmed() {
	k.mu.Lock()
	ready := k.saidReady && !k.proposed && max(k.revision, k.refused) >= k.pushed
	k.proposed = k.proposed || ready
	k.mu.Unlock()
	if ready {
		k.proposals.setReady()
	}
	k.links.mu.Lock()
	k.links.tell()
	k.links.mu.Unlock()
}
