package nodelink

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// queueMax bounds the frames that wait to be sent on one link. A node that lets it fill up is fenced.
const queueMax = 4096

// link is one link in being, from its registration to its loss.
type link struct {
	links      *Links
	node       fsm.NodeID
	generation fsm.Generation
	instance   uint64
	token      [32]byte // SHA-256 of the one that it proved itself with
	secret     []byte
	version    string
	platform   string
	conn       *controlConn

	queue        chan *nodepb.EdgeFrame
	sendingSince atomic.Int64 // since links.started, ns; 0 = not sending
	heardAt      atomic.Int64 // last frame of the node, since links.started, ns
	pong         chan struct{}
	answered     atomic.Uint64 // newest of our heartbeats that the node saw
	beats        atomic.Uint64 // newest heartbeat sent
	beatAt       atomic.Int64
	rtt          atomic.Int64
	lost         chan struct{} // closed when the link is lost
	commanded    chan struct{} // closed when the machine knows, or will never
	proposals    *proposals

	mu         sync.Mutex
	ready      bool
	leaving    bool // the node said goodbye: no new run
	retired    bool // its session ended: no new run, and no command
	hungUp     bool // retired, and the node has ended its control stream
	isLost     bool
	orderly    bool // lost, but what is queued is still sent
	reason     fsm.Reason
	proposed   bool     // NodeReady is on its way to the machine, or was
	refused    uint64   // newest configuration that the node would not take
	saidReady  bool     // the node is ready, maybe with an older configuration than was pushed since
	began      uint64   // the configuration of its registration
	revision   uint64   // of the configuration that the node has confirmed
	pushed     uint64   // of the newest that was sent to it
	providers  []string // ids, of the newest payload
	refreshErr string
	looks      looks
	pool       pool
	runs       map[uint64]*run
	nextRun    uint64
}

func newLink(l *Links, reg *nodepb.Register, generation fsm.Generation, conn *controlConn, secret []byte) *link {
	k := &link{
		links: l, node: fsm.NodeID(reg.Node), generation: generation, instance: reg.Instance, token: sha256.Sum256([]byte(reg.Token)), secret: secret,
		version: reg.Version, platform: reg.Platform, conn: conn,
		queue: make(chan *nodepb.EdgeFrame, queueMax),
		pong:  make(chan struct{}, 1), lost: make(chan struct{}), commanded: make(chan struct{}),
		runs: map[uint64]*run{},
	}
	k.proposals = newProposals()
	k.looks.k = k
	k.heard()
	return k
}

// lose ends the link, once. propose: the machine does not know yet. orderly: what is queued is still sent. It does not
// block: the link's own loop cleans up.
func (k *link) lose(reason fsm.Reason, propose, orderly bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loseLocked(reason, propose, orderly)
}

func (k *link) loseLocked(reason fsm.Reason, propose, orderly bool) {
	if k.isLost {
		return
	}
	k.isLost, k.reason, k.orderly = true, reason, orderly
	k.proposals.end(reason, propose)
	close(k.lost)
}

// send queues a frame. A full queue means that the node does not read: it is fenced.
func (k *link) send(f *nodepb.EdgeFrame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sendLocked(f)
}

func (k *link) sendLocked(f *nodepb.EdgeFrame) {
	if k.isLost {
		return
	}
	select {
	case k.queue <- f:
	default:
		k.links.o.Logger.Warn("link: the node does not read its frames, it is fenced", "node", k.node, "generation", k.generation)
		k.loseLocked(fsm.ReasonLinkLost, true, false)
	}
}

// dismiss tells the node that the edge stops, and loses the link in the same moment, so that the node's answer to it
// (it closes) is not taken for the cause.
func (k *link) dismiss() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sendLocked(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Goodbye{Goodbye: &nodepb.Goodbye{
		Reason: "the edge stops", RetryAfterMs: uint64(k.links.o.GoodbyeRetryAfter / time.Millisecond),
	}}})
	k.loseLocked(fsm.ReasonGoodbye, true, true)
}

// ended tells the node that its link is no longer current, and loses it without a command: the machine said so.
func (k *link) ended(reason fsm.Reason) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sendLocked(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_LinkEnded{LinkEnded: &nodepb.LinkEnded{
		Generation: uint64(k.generation), Reason: reason.String(),
	}}})
	k.loseLocked(reason, false, true)
}

// now is the time since the edge started: monotonic.
func (k *link) now() time.Duration { return time.Since(k.links.started) }

func (k *link) heard() { k.heardAt.Store(int64(k.now())) }

func (k *link) silence() time.Duration { return k.now() - time.Duration(k.heardAt.Load()) }

// stuck is how long the send in progress has taken.
func (k *link) stuck() time.Duration {
	since := k.sendingSince.Load()
	if since == 0 {
		return 0
	}
	return k.now() - time.Duration(since)
}

// beat queues a heartbeat and returns its number.
func (k *link) beat(ping bool) uint64 {
	n := k.beats.Add(1)
	k.beatAt.Store(int64(k.now()))
	k.send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Heartbeat{Heartbeat: &nodepb.Heartbeat{
		N: n, AgeNs: uint64(k.now()), Ping: ping,
	}}})
	return n
}

// heartbeat takes the node's.
func (k *link) heartbeat(h *nodepb.Heartbeat) {
	if h.Answers > k.answered.Load() {
		k.answered.Store(h.Answers)
		if h.Answers == k.beats.Load() {
			k.rtt.Store(int64(k.now()) - k.beatAt.Load())
		}
	}
	select {
	case k.pong <- struct{}{}:
	default:
	}
}

// alive pings the node and tells whether it answered within PingWait. That must be shorter than a node waits for the
// answer to its registration (10 s), or a half-dead link could never be superseded.
func (k *link) alive() bool {
	n := k.beat(true)
	timer := time.NewTimer(k.links.o.PingWait)
	defer timer.Stop()
	for k.answered.Load() < n {
		select {
		case <-k.pong:
		case <-k.lost:
			return false
		case <-timer.C:
			return false
		}
	}
	return true
}
