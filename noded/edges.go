package noded

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"

	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// edges are the links of the node: to the addresses of its file, always, and to those that the cluster's edges tell of.
// What they told is kept in the data directory, so that a node finds its way when the edges of the file have moved.
type edges struct {
	d     *Daemon
	build func(address, edge string) (*edgelink.Link, error)
	kept  memory

	saving  sync.Mutex // one at a time
	mu      sync.Mutex
	ctx     context.Context // of run; nil before it
	stopped bool            // nothing is started any more
	running sync.WaitGroup
	errs    []error
	file    []*edgelink.Link
	told    map[string]*toldEdge // by edge id
	known   edgelink.Membership
	health  map[string]health // newest per provider, for links that come later
}

// toldEdge is a link to an address that the cluster told.
type toldEdge struct {
	address string
	link    *edgelink.Link
}

type health struct {
	state nodepb.Health_State
	cause string
}

func newEdges(d *Daemon, file []string, kept memory, build func(address, edge string) (*edgelink.Link, error)) (*edges, error) {
	e := &edges{d: d, build: build, kept: kept, told: map[string]*toldEdge{}, health: map[string]health{}}
	for _, address := range file {
		l, err := build(address, "")
		if err != nil {
			return nil, err
		}
		e.file = append(e.file, l)
	}
	return e, nil
}

// run keeps all links up until ctx ends and they have.
func (e *edges) run(ctx context.Context) error {
	known := e.kept.load(e.d.log)
	e.mu.Lock()
	e.ctx = ctx
	for _, l := range e.file {
		e.start(l)
	}
	e.mu.Unlock()
	e.take(known, false)
	<-ctx.Done()
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	e.running.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.errs...)
}

// start runs a link; e is locked.
func (e *edges) start(l *edgelink.Link) {
	for provider, h := range e.health {
		l.Health(provider, h.state, h.cause)
	}
	e.running.Go(func() {
		if err := l.Run(e.ctx); err != nil {
			e.mu.Lock()
			e.errs = append(e.errs, err)
			e.mu.Unlock()
		}
	})
}

// keep has what is known written; e is locked. The disk may take its time, which the caller has not.
func (e *edges) keep() {
	e.running.Go(func() {
		e.saving.Lock()
		defer e.saving.Unlock()
		e.mu.Lock()
		m := e.known
		e.mu.Unlock()
		e.kept.save(m, e.d.log)
	})
}

// take dials what is new, and leaves what is gone when its link has ended. What is older than what is known, or names
// nobody, is no news. That all links are to one cluster edgelink sees to. keep: it is for the next start, too.
func (e *edges) take(m edgelink.Membership, keep bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	same := m.Cluster == e.known.Cluster
	if e.ctx == nil || e.stopped || len(m.Edges) == 0 || same && m.Index < e.known.Index {
		return
	}
	news := !same || !maps.Equal(m.Edges, e.known.Edges)
	e.known = m
	if keep && news {
		e.keep()
	}
	for id, t := range e.told {
		if m.Edges[id] != t.address {
			t.link.Leave()
			delete(e.told, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.Edges)) {
		if len(e.told) < edgesMax {
			e.dial(id, m.Edges[id])
		}
	}
}

// edgesMax bounds the links to addresses that were told.
const edgesMax = 64

// dial begins a link to an edge, unless its address is dialled already.
func (e *edges) dial(id, address string) {
	if e.told[id] != nil || slices.Contains(e.d.config.Edges, address) {
		return
	}
	if e.d.security == nil && !e.d.config.Plaintext && !loopback(address) {
		e.d.log.Warn("an edge of the cluster is on another machine, and is not dialled: the token and all prompts would travel unencrypted; "+
			"set node.tls.enabled, or accept plain text with node.plaintext", "edge_id", id, "edge", address)
		return
	}
	l, err := e.build(address, id)
	if err != nil {
		e.d.log.Error("an edge of the cluster can't be dialled", "edge_id", id, "edge", address, "error", err)
		return
	}
	e.d.log.Info("an edge of the cluster", "edge_id", id, "edge", address)
	e.told[id] = &toldEdge{address: address, link: l}
	e.start(l)
}

// tell tells every edge of a provider's condition.
func (e *edges) tell(provider string, state nodepb.Health_State, cause string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.health[provider] = health{state, cause}
	for _, l := range e.file {
		l.Health(provider, state, cause)
	}
	for _, t := range e.told {
		t.link.Health(provider, state, cause)
	}
}

// count is how many edges are dialled.
func (e *edges) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.file) + len(e.told)
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
