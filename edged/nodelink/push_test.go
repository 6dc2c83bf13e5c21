package nodelink

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
	"testing"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// shelf is a Catalog whose revision moves.
type shelf struct {
	revision atomic.Uint64
	replaced atomic.Bool // the node's token is another one now
}

func (s *shelf) Node(fsm.NodeID) (NodeEntry, bool) {
	sum := sha256.Sum256([]byte("secret"))
	if s.replaced.Load() {
		sum = sha256.Sum256([]byte("another"))
	}
	n := s.revision.Load()
	return NodeEntry{TokenSHA256: hex.EncodeToString(sum[:]), Revision: n, Payload: shelved(n)}, true
}

func shelved(revision uint64) *nodepb.NodeConfigPayload {
	return &nodepb.NodeConfigPayload{Providers: []*nodepb.ProviderConfig{{Id: "p", Capacity: uint32(revision)}}}
}

// push is what the daemon does: the catalog first, then the links.
func (s *shelf) push(l *Links, revision uint64) {
	s.revision.Store(revision)
	l.Push(revision, func(fsm.NodeID) *nodepb.NodeConfigPayload { return shelved(revision) })
}

func startShelved(t *testing.T) (*edge, *shelf) {
	t.Helper()
	s := &shelf{}
	s.revision.Store(1)
	return startEdge(t, func(o *Options) { o.Catalog = s }), s
}

func (y *yes) readies() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for _, cmd := range y.said {
		if _, ok := cmd.(*fsm.NodeReady); ok {
			n++
		}
	}
	return n
}

// begin registers and returns the edge's answer.
func (r *rough) begin() *nodepb.Accepted {
	r.t.Helper()
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Register{Register: registration()}})
	return r.next().GetAccepted()
}

func (r *rough) saysReady(a *nodepb.Accepted) {
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Ready{Ready: &nodepb.Ready{Generation: a.Generation, Revision: a.Revision}}})
}

func (r *rough) acks(revision uint64, fault string) {
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RefreshAck{RefreshAck: &nodepb.RefreshAck{Revision: revision, Error: fault}}})
}

// While a registration is written the configuration changes: the answer is of the new one, and nothing is pushed twice.
func TestRegistrationIsAnsweredWithTheNewestConfiguration(t *testing.T) {
	e, s := startShelved(t)
	e.y.registered = func(fsm.Generation) { s.push(e.Links, 2) }
	r := dialRough(t, e)
	a := r.begin()
	if a.GetRevision() != 2 || a.GetPayload().GetProviders()[0].GetCapacity() != 2 {
		t.Fatalf("%v", a)
	}
	r.saysReady(a)
	await(t, "it is ready", func() bool { return e.Status()[0].Ready })
}

// A configuration that comes while a link is pending is confirmed before the link is ready.
func TestPendingLinkIsReadyWithTheNewestConfiguration(t *testing.T) {
	e, s := startShelved(t)
	r := dialRough(t, e)
	a := r.begin()
	await(t, "the link is there", func() bool { return len(e.Status()) == 1 })
	s.push(e.Links, 2)
	s.push(e.Links, 3)
	r.saysReady(a)
	for _, want := range []uint64{2, 3} {
		if f := r.next().GetConfigRefresh(); f.GetRevision() != want {
			t.Fatalf("%v, want revision %d", f, want)
		}
	}
	r.acks(2, "")
	await(t, "the old one is confirmed", func() bool { return e.Status()[0].Revision == 2 })
	if st := e.Status()[0]; st.Ready || e.y.readies() != 0 {
		t.Errorf("ready with an old configuration: %+v", st)
	}
	r.acks(3, "")
	await(t, "it is ready", func() bool { return e.Status()[0].Ready })
	r.acks(3, "")
	s.push(e.Links, 4)
	r.acks(4, "")
	await(t, "the next is confirmed", func() bool { return e.Status()[0].Revision == 4 })
	if n := e.y.readies(); n != 1 {
		t.Errorf("the machine was told %d times that the link is ready", n)
	}
}

// A node that can't take the newest configuration serves on with what it has, rather than never.
func TestPendingLinkWhoseNodeRefusesThePush(t *testing.T) {
	e, s := startShelved(t)
	r := dialRough(t, e)
	a := r.begin()
	await(t, "the link is there", func() bool { return len(e.Status()) == 1 })
	s.push(e.Links, 2)
	r.saysReady(a)
	r.acks(2, "no such adapter")
	await(t, "it is ready", func() bool { return e.Status()[0].Ready })
	if st := e.Status()[0]; st.Revision != 1 || st.Refused != 2 || st.RefreshErr != "no such adapter" {
		t.Errorf("%+v", st)
	}
}

// Whatever was pushed before a run began, the run names.
func TestRunNamesTheConfigurationThatItNeeds(t *testing.T) {
	e, s := startShelved(t)
	r := dialRough(t, e).link()
	s.push(e.Links, 7)
	c, _ := r.data(r.proof())
	ended := make(chan End, 1)
	go func() { ended <- e.Exchange(t.Context(), r.exchange(), nothing{}) }()
	var q nodepb.Request
	if err := nodepb.ReadRequest(bufio.NewReader(c), &q); err != nil || q.Revision != 7 {
		t.Errorf("revision %d, %v", q.Revision, err)
	}
	e.stop()
	<-ended
}

func TestNewsOfConfirmations(t *testing.T) {
	e, s := startShelved(t)
	r := dialRough(t, e).link()
	s.push(e.Links, 2)
	news := e.News()
	r.acks(2, "")
	select {
	case <-news:
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
	await(t, "it is confirmed", func() bool { return e.Status()[0].Revision == 2 })
}

// A shorter fence_timeout_ms is live.
func TestFenceTimeoutChanges(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.FenceTimeout = time.Hour })
	e.SetFenceTimeout(0)
	if e.fenceTimeout.Load() != int64(time.Hour) {
		t.Error("0 was taken")
	}
	e.SetFenceTimeout(time.Second)
	if e.fenceTimeout.Load() != int64(time.Second) {
		t.Error("it was not taken")
	}
}

// A link does not outlive the token that it was made with: the machine fences it, and the node can't come back with it.
func TestLinkEndsWithItsToken(t *testing.T) {
	s := &shelf{}
	e := startEdge(t, func(o *Options) { o.Catalog, o.HeartbeatInterval = s, 20*time.Millisecond })
	r := dialRough(t, e)
	a := r.begin()
	r.saysReady(a)
	await(t, "it is ready", func() bool { return len(e.Status()) == 1 && e.Status()[0].Ready })
	s.replaced.Store(true)
	await(t, "the link is gone", func() bool { return len(e.Status()) == 0 })
	await(t, "the machine knows", func() bool {
		e.y.mu.Lock()
		defer e.y.mu.Unlock()
		for _, cmd := range e.y.said {
			if l, ok := cmd.(*fsm.LinkLost); ok && uint64(l.Generation) == a.GetGeneration() {
				return true
			}
		}
		return false
	})
	again := dialRough(t, e)
	again.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Register{Register: registration()}})
	if f := again.next().GetRefused(); f.GetCode() != "wrong_token" {
		t.Errorf("it comes back: %v", f)
	}
}
