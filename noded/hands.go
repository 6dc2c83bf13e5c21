package noded

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"iop/noded/adapter"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
	"iop/proto/spans"
)

// Codes of runs that end here, none of them dispatched.
const (
	codeConcurrency   = "concurrency"   // the gate refused
	codeMisconfigured = "misconfigured" // there is no such adapter here, or it can't be built
	codeUnsupported   = "unsupported"   // the adapter can't run this kind
)

// hands do what the edges ask: they are edgelink's Hands for all links.
type hands struct {
	build   builder
	monitor *monitor
	log     *slog.Logger
	tracer  *spans.Tracer // nil: nothing is recorded
	current atomic.Pointer[registry]

	mu     sync.Mutex // one Configure at a time
	closed bool
	warned bool // that any program may be started
}

func newHands(b builder, m *monitor, log *slog.Logger) *hands {
	h := &hands{build: b, monitor: m, log: log}
	h.current.Store(emptyRegistry())
	return h
}

// Configure builds the adapters of p and puts them in place of the former ones, which are closed after their last run.
// The last configuration that an edge has sent holds: replicas that lag behind send the newer one as soon as they have
// it, and one that starts anew may count its revisions from 1 again.
func (h *hands) Configure(_ context.Context, revision uint64, p *nodepb.NodeConfigPayload) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.current.Load()
	if h.closed || old.same(revision, p) {
		return nil
	}
	n, err := old.next(h.build, revision, p)
	if err != nil {
		return err
	}
	h.current.Store(n)
	h.monitor.set(n.watches)
	old.leave()
	h.log.Info("configured", "revision", revision, "adapters", len(n.places), "providers", len(n.watches))
	if h.build.commands == nil && !h.warned && hasAgents(p) {
		h.warned = true
		h.log.Warn("any program that the edge's configuration names can be started here; list them under commands: in the node file")
	}
	for id, pl := range n.places {
		if b, ok := pl.station.Adapter.(brokenAdapter); ok {
			h.log.Error("an adapter can't be built", "adapter", id, "error", b.cause)
		}
	}
	return nil
}

// Run runs r at its backend and returns when the backend call is really over.
func (h *hands) Run(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
	t := h.startTrace(r)
	end := h.run(ctx, r, a, &t)
	h.endRun(r, &t, &end)
	return end
}

func (h *hands) run(ctx context.Context, r *edgelink.Run, a edgelink.Answer, t *traced) edgelink.End {
	reg, p, ok := h.enter(r.Adapter)
	if !ok {
		return refused(codeMisconfigured, "this node has no adapter "+r.Adapter)
	}
	defer p.station.leave()
	if r.Kind != nodepb.KindTunnel && r.Kind != "" {
		return refused(codeUnsupported, "adapter "+r.Adapter+" can't do runs of kind "+r.Kind)
	}
	if g := reg.gates[r.Provider]; g != nil { // else the provider went while the run was on its way
		if !g.TryAcquire() {
			t.gate(true, g.Capacity(), g.InFlight())
			h.about(r, t).Warn("gate refused a run that the edge had granted", "adapter", r.Adapter, "provider", r.Provider,
				"lease", r.Lease, "capacity", g.Capacity(), "in_flight", g.InFlight(), "refused", g.Refused())
			return refused(codeConcurrency, "provider "+r.Provider+" is at its capacity")
		}
		defer g.Release()
		t.gate(false, g.Capacity(), g.InFlight())
	}
	t.call(r, reg.types[r.Provider])
	noted := noting{Answer: a, timed: t.backend.Recording()}
	end := p.station.Do(ctx, callOf(r, reg.types[r.Provider], reg.windows[r.Provider], t.traceparent()), &noted)
	t.called(&end, &noted)
	if w := reg.watches[r.Provider]; w != nil {
		w.observe(ended{end: end, status: noted.status, took: time.Since(t.began)})
	}
	if end.Held != nil {
		handOn(end.Held, a)
	}
	return edgelink.End{Dispatched: dispatchedOf(end.Dispatched), Code: end.Code, Message: end.Message}
}

// enter finds an adapter in the current configuration and counts a user of it.
func (h *hands) enter(id string) (*registry, place, bool) {
	for {
		reg := h.current.Load()
		p, ok := reg.places[id]
		if !ok {
			return nil, place{}, false
		}
		if p.station.enter() {
			return reg, p, true
		} // else it was replaced just now
	}
}

// close ends all adapters. No run is on them any more.
func (h *hands) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.current.Swap(emptyRegistry()).leave()
}

func refused(code, message string) edgelink.End {
	return edgelink.End{Dispatched: edgelink.DispatchedNo, Code: code, Message: message}
}

func callOf(r *edgelink.Run, providerType string, window int64, traceparent string) *adapter.Call {
	c := &adapter.Call{
		Method:   r.Method,
		Path:     r.Path,
		Header:   r.Header,
		Body:     r.Body,
		Deadline: r.Deadline,
		Type:     providerType,
		Window:   window,
	}
	if traceparent != "" {
		c.Header = r.Header.Clone()
		if c.Header == nil {
			c.Header = http.Header{}
		}
		c.Header.Set("Traceparent", traceparent)
	}
	return c
}

func dispatchedOf(d adapter.Dispatched) edgelink.Dispatched {
	switch d {
	case adapter.DispatchedNo:
		return edgelink.DispatchedNo
	case adapter.DispatchedYes:
		return edgelink.DispatchedYes
	default:
		return edgelink.DispatchedUnknown
	}
}

// handOn sends the answer of a backend that declares not to have run the request. The end says so as well, so the edge
// keeps this back while another candidate is left. Whether it arrives changes nothing about the run.
func handOn(held *adapter.Held, a edgelink.Answer) {
	if a.Head(held.Status, held.Header) == nil && len(held.Body) > 0 {
		_ = a.Data(held.Body)
	}
}
