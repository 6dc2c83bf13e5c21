package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
)

// feed is what the viewers of one rhythm share. Nobody ticks it: the first of them to come after a tick computes the frame,
// the others find it. Without viewers nothing is computed and nothing is kept.
type feed struct {
	every time.Duration

	mu      sync.Mutex // guards the rest
	viewers int
	seq     uint64 // of the last frame; it goes on when nobody looks
	picture
}

// picture is what a feed keeps while somebody looks.
type picture struct {
	tick    int64          // the number of the last one that was computed, since 1970
	changes []encodedFrame // the last ones, at most changesKept; that of seq is the last
	whole   encodedFrame   // of seq; empty = not made yet

	head    adminapi.Frame // of seq, without rows
	rows    liveRows
	members []adminapi.LiveMember
	beat    uint64       // the last sample of the pulse that was sent
	snap    fsm.Snapshot // of index
	index   uint64       // 0 = none was looked at
}

// changesKept is how many frames a viewer may be behind before it gets a whole.
const changesKept = 8

// encodedFrame is an event as it is sent, cut where the viewer's own word belongs.
type encodedFrame struct {
	seq           uint64
	before, after []byte
}

// actionsMark is where a frame says what its viewer may do. Nothing before it can contain it: quotes in texts are escaped.
var actionsMark = []byte(`"actions":""`)

func encodeFrame(event string, f *adminapi.Frame) encodedFrame {
	body, err := json.Marshal(f)
	if err != nil {
		panic("admin: a frame can't be encoded: " + err.Error()) // it has texts and numbers only
	}
	var b bytes.Buffer
	b.Grow(len(body) + 64)
	fmt.Fprintf(&b, "event: %s\nid: %d\ndata: ", event, f.Seq)
	at := bytes.Index(body, actionsMark)
	cut := b.Len() + at
	b.Write(body)
	b.WriteString("\n\n")
	return encodedFrame{seq: f.Seq, before: b.Bytes()[:cut], after: b.Bytes()[cut+len(actionsMark):]}
}

// parts gives what is to be written for a viewer who may do that.
func (e *encodedFrame) parts(actions string) [][]byte {
	return [][]byte{e.before, []byte(`"actions":"` + actions + `"`), e.after}
}

// enter counts a viewer; leave is its end. With the last one all that was kept goes.
func (f *feed) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers++
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers--; f.viewers == 0 {
		f.picture = picture{}
	}
}

// next gives the frames for a viewer that has all up to seen (0 = none), at the given moment, and the number of the last.
func (f *feed) next(a *api, seen uint64, now time.Time) ([]encodedFrame, uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// A viewer that comes late, with the tick before, finds that of now; a wall clock that was set back stops nobody's picture.
	if tick := now.UnixNano() / int64(f.every); f.rows.providers == nil || tick > f.tick || tick < f.tick-1 {
		if err := f.compute(a, now); err != nil {
			return nil, seen, err
		}
		f.tick = tick
	}
	if behind := f.seq - seen; seen != 0 && behind <= uint64(len(f.changes)) {
		return slices.Clone(f.changes[uint64(len(f.changes))-behind:]), f.seq, nil
	}
	if f.whole.seq != f.seq || f.whole.before == nil {
		f.whole = encodeFrame(adminapi.LiveWhole, f.makeWhole(a))
	}
	return []encodedFrame{f.whole}, f.seq, nil
}

// compute looks at the edge and makes the next frame. The caller holds mu.
func (f *feed) compute(a *api, now time.Time) error {
	var g *fsm.Glance
	index := f.index
	names, err := a.look(func(m *fsm.Machine) {
		if f.rows.providers != nil && m.Index() == index {
			return // nothing has happened
		}
		f.snap = m.Snapshot()
		glance := m.Glance()
		g = &glance
	})
	if err != nil {
		return err
	}
	first := f.rows.providers == nil
	if first {
		f.rows = liveRows{
			providers: map[string]adminapi.Provider{}, nodes: map[string]adminapi.Node{},
			leases: map[uint64]adminapi.LiveLease{}, waiters: map[string]adminapi.LiveWaiter{},
		}
	}
	f.index = f.snap.Index
	f.seq++
	f.whole = encodedFrame{}
	f.head = a.liveHead(&f.snap, now)
	f.head.Seq = f.seq
	change := f.head
	f.renew(a, names, g, &change)
	change.Pulse, f.beat = a.pulseSince(f.beat)
	if first {
		return nil // there is nobody who could use a change
	}
	if len(f.changes) == changesKept {
		f.changes = slices.Delete(f.changes, 0, 1)
	}
	f.changes = append(f.changes, encodeFrame(adminapi.LiveChange, &change))
	return nil
}

// renew brings the rows up to date and puts what has changed into the frame. g = nil: the requests are as they were.
func (f *feed) renew(a *api, names *names, g *fsm.Glance, change *adminapi.Frame) {
	change.Providers, change.ProvidersGone = renew(f.rows.providers, showProviders(f.snap, names),
		func(p *adminapi.Provider) string { return p.ID }, sameProvider)
	change.Nodes, change.NodesGone = renew(f.rows.nodes, a.showNodes(f.snap, names),
		func(n *adminapi.Node) string { return n.ID }, sameNode)
	if g != nil {
		change.Leases, change.LeasesGone = renew(f.rows.leases, showLiveLeases(g.Leases),
			func(l *adminapi.LiveLease) uint64 { return l.ID }, same)
		change.Waiters, change.WaitersGone = renew(f.rows.waiters, showLiveWaiters(g),
			func(w *adminapi.LiveWaiter) string { return w.Request }, same)
	}
	if members := a.members.known(); !slices.Equal(members, f.members) {
		f.members, change.Members = members, members
	}
}

// makeWhole gives all that is. The caller holds mu.
func (f *feed) makeWhole(a *api) *adminapi.Frame {
	w := f.head
	w.Whole = true
	w.Providers = sortedRows(f.rows.providers, byProvider)
	w.Nodes = sortedRows(f.rows.nodes, byNode)
	w.Leases = sortedRows(f.rows.leases, func(a, b adminapi.LiveLease) int { return cmp.Compare(a.ID, b.ID) })
	w.Waiters = sortedRows(f.rows.waiters, func(a, b adminapi.LiveWaiter) int { return cmp.Compare(a.Place, b.Place) })
	w.Members = f.members
	w.Pulse = a.pulseUntil(f.beat)
	return &w
}

func (a *api) liveHead(s *fsm.Snapshot, now time.Time) adminapi.Frame {
	standing := a.Standing()
	return adminapi.Frame{
		AtMS: now.UnixMilli(), Edge: string(a.Edge), Version: a.Program, Role: standing.Role, Leader: standing.Leader,
		Term: s.Term, AppliedIndex: s.Index, Lag: standing.Lag, Revision: uint64(s.Revision),
		Queue: adminapi.Queue{Pending: s.Queue.Pending, Max: s.Queue.Max, LongPending: s.Queue.LongPending},
	}
}
