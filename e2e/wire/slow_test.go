package wire

import (
	"strings"
	"sync"
	"testing"
	"time"

	"iop/edged/nodelink"
	"iop/fsm"
)

// Fault: the node hung up when it had said all, and what a slow client had not taken yet of a run was lost with the link,
// whose session had ended before.
func TestSlowClientOfAnEndedSessionGetsAll(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatInterval, o.HeartbeatMissed = 20*time.Millisecond, 10 })
	c.mu.Lock()
	c.effects = e.links.Effects
	c.mu.Unlock()
	h := newSteady()
	startNode(t, e.address, "n1", &hands{run: h.run}, nil)
	ready(t, c, "n1", 1)
	g := c.admit(t, "r1")
	goesOn := make(chan struct{})
	var once sync.Once
	goOn := func() { once.Do(func() { close(goesOn) }) }
	t.Cleanup(goOn)
	a, end := &answer{onData: func([]byte) error { <-goesOn; return nil }}, make(chan nodelink.End, 1)
	go func() { end <- e.links.Exchange(t.Context(), request(g, "{}"), a) }()
	<-h.began
	c.mu.Lock()
	c.applyLocked(0, &fsm.EndSession{Edge: edgeID, Session: c.session, Alive: true})
	out := c.applyLocked(0, &fsm.OpenSession{Edge: edgeID, Nonce: 99})
	c.session, c.seq = out.Session, 0
	c.mu.Unlock()
	piece := strings.Repeat("x", 16<<10)
	const pieces = 12 // more than the edge reads at once, less than the network holds
	for range pieces {
		h.piece <- piece
	}
	h.piece <- ""
	await(t, "the node has hung up", func() bool { _, said := e.links.Carrying(); return said == 1 })
	goOn()
	if got := <-end; !got.Complete || len(a.text()) != pieces*len(piece) {
		t.Errorf("%+v, %d bytes", got, len(a.text()))
	}
	await(t, "the old transport is closed", func() bool { return e.counts.get("down n1 session_ended") == 1 })
}
