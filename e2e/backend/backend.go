package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Options set up a Backend.
type Options struct {
	Limit     int    // most runs at the same time; 0 = none. What is beyond gets 503 and counts as a violation
	FailEvery int    // every Nth run ends with 500; 0 = none
	Keep      int    // how many runs are remembered; 0 = 100,000, negative = none
	Default   Plan   // for requests without a plan of their own
	Address   string // "" = 127.0.0.1 on a free port
}

// Backend is the server. All methods are safe for concurrent use.
type Backend struct {
	limit, failEvery, keep int
	address                string // host:port, kept over Refuse and Accept
	unwell                 atomic.Bool

	mu      sync.Mutex
	plan    Plan
	byTag   map[string]Plan
	stats   Stats
	runs    []*running
	held    []*running
	credits int
	open    bool

	lifeMu sync.Mutex
	server *http.Server // nil while it refuses
	done   chan struct{}
}

// New starts a backend on a free port of the loopback.
func New(o Options) (*Backend, error) {
	b := &Backend{
		limit: o.Limit, failEvery: o.FailEvery, keep: o.Keep, plan: o.Default,
		byTag: map[string]Plan{}, address: o.Address,
	}
	if b.keep == 0 {
		b.keep = 100_000
	}
	if b.address == "" {
		b.address = "127.0.0.1:0"
	}
	if err := b.Accept(); err != nil {
		return nil, err
	}
	return b, nil
}

// Accept listens (again) on the backend's address.
func (b *Backend) Accept() error {
	b.lifeMu.Lock()
	defer b.lifeMu.Unlock()
	if b.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", b.address)
	if err != nil {
		return fmt.Errorf("listen as a backend: %w", err)
	}
	b.address = l.Addr().String()
	server := &http.Server{Handler: b, MaxHeaderBytes: 1 << 20}
	done := make(chan struct{})
	b.server, b.done = server, done
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // the listener is ours alone
		}
	}()
	return nil
}

// Refuse closes the listener and every connection: what comes now is refused by the system.
func (b *Backend) Refuse() {
	b.lifeMu.Lock()
	defer b.lifeMu.Unlock()
	if b.server == nil {
		return
	}
	_ = b.server.Close()
	<-b.done
	b.server = nil
}

// Close ends the backend; held runs go.
func (b *Backend) Close() {
	b.LetAll()
	b.Refuse()
}

// Address is host:port; URL is what a gateway's base_url wants.
func (b *Backend) Address() string { return b.address }

// URL is the base that clients of OpenAI's API want.
func (b *Backend) URL() string { return "http://" + b.address + "/v1" }

// Set replaces the default plan.
func (b *Backend) Set(p Plan) {
	b.mu.Lock()
	b.plan = p
	b.mu.Unlock()
}

// SetFor gives requests with a tag a plan of their own.
func (b *Backend) SetFor(tag string, p Plan) {
	b.mu.Lock()
	b.byTag[tag] = p
	b.mu.Unlock()
}

// SetWell says what GET /health answers: 200, or 503 if not well. A new backend is well.
func (b *Backend) SetWell(well bool) { b.unwell.Store(!well) }

func (b *Backend) planFor(tag string) Plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.byTag[tag]; ok {
		return p
	}
	return b.plan
}

// Await polls nothing: it returns when ctx ends. It keeps a process that only serves alive.
func (b *Backend) Await(ctx context.Context) { <-ctx.Done(); b.Close() }
