package wire

import (
	"slices"
	"testing"

	"iop/e2e/backend"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/proto/nodepb"
)

// newBackend is a backend that holds every run until it is let go.
func newBackend(t testing.TB, limit int) *backend.Backend {
	t.Helper()
	b, err := backend.New(backend.Options{Limit: limit, Default: backend.Plan{Hold: backend.BeforeHead}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

const chat = `{"model":"served","messages":[{"role":"user","content":"hi"}]}`

// dispatch sends a run to its node, whatever admission would say, and gives its end later.
func (e *edge) dispatch(t testing.TB, g fsm.Grant) <-chan nodelink.End {
	end := make(chan nodelink.End, 1)
	go func() { end <- e.links.Exchange(t.Context(), request(g, chat), &answer{}) }()
	return end
}

// Dispatches past the edge's admission can't open a further call to the backend: the gate refuses them, explicitly and provably
// not run.
func TestTheGateHoldsWithAdmissionBypassed(t *testing.T) {
	const capacity, surplus = 2, 6
	b := newBackend(t, capacity)
	c := newCluster(t, "n1") // whose machine believes in a capacity of 2,000
	e := startEdge(t, c, func(o *nodelink.Options) {
		o.Catalog = catalog{c, map[fsm.NodeID]*nodepb.NodeConfigPayload{"n1": offer("n1", "vllm", b.URL(), capacity)}}
	})
	start(t, newDaemon(t, "n1", token, e.address).Run)
	ready(t, c, "n1", 1)
	for round := range 3 {
		var ends []<-chan nodelink.End
		for range capacity {
			ends = append(ends, e.dispatch(t, c.admit(t, "held"+string(rune('a'+round))+string(rune('0'+len(ends))))))
		}
		await(t, "the backend is full", func() bool { return b.Stats().Held == capacity })
		for i := range surplus {
			end := <-e.dispatch(t, c.admit(t, "surplus"+string(rune('a'+round))+string(rune('0'+i))))
			if end.Code != "concurrency" || end.Dispatched != nodelink.DispatchedNo {
				t.Fatalf("a run beyond the capacity ended with %+v", end)
			}
		}
		b.Let(capacity)
		for _, end := range ends {
			if got := <-end; !got.Complete || got.Code != "" {
				t.Fatalf("a run within the capacity ended with %+v", got)
			}
		}
	}
	if s := b.Stats(); s.Peak != capacity || s.Violations != 0 || s.Total != 3*capacity {
		t.Errorf("backend %+v", s)
	}
}

// A run that the gate refuses goes back to its old place: it is before one that came to the queue while it was under way.
func TestARunThatTheGateRefusesKeepsItsPlace(t *testing.T) {
	b1, b2 := newBackend(t, 1), newBackend(t, 1)
	c := newCluster(t, "n1", "n2")
	provider := func(node fsm.NodeID, capacity, priority int) fsm.ProviderConfig {
		return fsm.ProviderConfig{
			ID: fsm.ProviderID("p-" + node), Node: node, Capacity: capacity, Priority: priority,
			LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds,
		}
	}
	one, two := fsm.Candidate{Provider: "p-n1", Served: "served"}, fsm.Candidate{Provider: "p-n2", Served: "served"}
	c.apply(0, &fsm.ApplyConfig{Document: []byte("{}"), Force: true, Config: fsm.Config{
		Pool: fsm.Pool{MaxQueue: 16}, Nodes: []fsm.NodeID{"n1", "n2"},
		Providers: []fsm.ProviderConfig{provider("n1", 2000, 0), provider("n2", 1, 1)},
		Models: []fsm.ModelConfig{
			{ID: model, Candidates: []fsm.Candidate{one, two}}, {ID: "only-n1", Candidates: []fsm.Candidate{one}}, {ID: "only-n2", Candidates: []fsm.Candidate{two}},
		},
	}})
	e := startEdge(t, c, func(o *nodelink.Options) {
		o.Catalog = catalog{c, map[fsm.NodeID]*nodepb.NodeConfigPayload{"n1": offer("n1", "vllm", b1.URL(), 1), "n2": offer("n2", "vllm", b2.URL(), 1)}}
	})
	start(t, newDaemon(t, "n1", token, e.address).Run)
	start(t, newDaemon(t, "n2", token, e.address).Run)
	ready(t, c, "n1", 1)
	ready(t, c, "n2", 1)
	admit := func(id fsm.RequestID, m fsm.ModelID, want fsm.Code) fsm.Grant {
		out := c.apply(c.session, &fsm.Admit{Request: id, Model: m})
		if out.Code != want {
			t.Fatalf("admit %s: %v %v", id, out.Code, out.Refusal)
		}
		return out.Grant
	}
	first, other := admit("first", "only-n1", fsm.Granted), admit("other", "only-n2", fsm.Granted)
	held := []<-chan nodelink.End{e.dispatch(t, first), e.dispatch(t, other)}
	await(t, "both backends are full", func() bool { return b1.Stats().Held == 1 && b2.Stats().Held == 1 })
	refused := admit("refused", model, fsm.Granted) // the machine thinks that n1 has room
	if end := <-e.dispatch(t, refused); end.Code != "concurrency" || end.Dispatched != nodelink.DispatchedNo {
		t.Fatalf("end %+v", end)
	}
	admit("later", "only-n2", fsm.Queued)
	if out := c.apply(c.session, &fsm.Release{Lease: refused.Lease, Reason: fsm.ReasonNotRun, Requeue: true}); out.Code != fsm.Queued {
		t.Fatalf("requeue: %v %v", out.Code, out.Refusal)
	}
	if got, want := c.waiting(), []fsm.RequestID{"refused", "later"}; !slices.Equal(got, want) {
		t.Fatalf("waiting are %v, want %v", got, want)
	}
	b1.Let(1)
	b2.Let(1)
	for _, end := range held {
		if got := <-end; !got.Complete {
			t.Fatalf("end %+v", got)
		}
	}
	c.release(first) // n1 is excluded for it now, though it is free
	if got := c.waiting(); len(got) != 2 {
		t.Fatalf("waiting are %v", got)
	}
	c.release(other)
	if got := c.waiting(); !slices.Equal(got, []fsm.RequestID{"later"}) {
		t.Fatalf("waiting are %v", got)
	}
	if got := c.held(); len(got) != 1 || got[0].Request != "refused" {
		t.Fatalf("held are %+v", got)
	}
}
