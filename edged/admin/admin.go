package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"iop/edged/adminapi"
	"iop/fsm"
)

// Source is where the state comes from: storage.Store.
type Source interface {
	// View calls fn with the machine under a read lock; fn keeps nothing of it.
	View(fn func(*fsm.Machine))
	// Watch is a lossy copy of all effects, holding at most n, closed when ctx ends or the source does.
	Watch(ctx context.Context, n int) <-chan fsm.Effect
}

// Standing is this replica's part in the cluster.
type Standing struct {
	Role   string // leader, follower, candidate, ...
	Leader string // edge id of the leader; "" = none known
	Index  uint64 // of the last entry that it has applied
	Lag    uint64 // entries that it has and has not applied yet
}

// Options are what the handler needs. Source and Edge are required.
type Options struct {
	Source Source
	Edge   fsm.EdgeID
	// Standing tells the replica's part at the moment; nil = a leader of its own.
	Standing func() Standing
	// Version is that of a linked node's noded, "" if it has no link to this edge; nil = unknown for all.
	Version func(fsm.NodeID) string
	// Healthy returns an error when the replica can't do its work any more; nil = it always can.
	Healthy func() error
	// Refresh does POST /refresh; an error of it that is no *adminapi.Error is answered 500. nil = 404.
	Refresh func(context.Context, adminapi.RefreshRequest) (*adminapi.RefreshReport, error)
	// AddNode does POST /nodes and AddJoin POST /nodes/{id}/join; errors as those of Refresh. nil = there is no such route.
	AddNode func(context.Context, adminapi.NodeRequest) (*adminapi.RefreshReport, error)
	AddJoin func(context.Context, adminapi.JoinRequest) (*adminapi.JoinOffer, error)
	// Drain does POST /drain: it proposes the command. false: there is no such node or provider. nil = 404.
	Drain func(context.Context, *fsm.Drain) (known bool, err error)
	// Evict does POST /queue/{id}/cancel: it proposes the command and returns its outcome. nil = 404.
	Evict func(context.Context, fsm.RequestID) (fsm.Outcome, error)
	// Backend asks a node what the backend of a provider tells of itself; nil = nothing is told.
	Backend func(context.Context, fsm.NodeID, fsm.ProviderID) *adminapi.Backend
	// History answers GET /config/history; nil = it is empty.
	History func() []adminapi.ConfigRevision
	// Past tells what was; nil = nothing is told.
	Past Past
	// Cluster shows and changes the members, under /cluster; nil = there is no such route.
	Cluster Cluster
	// Metrics serves GET /metrics; nil = 404.
	Metrics http.Handler
	// Page serves GET / and below /ui/ without a token: it holds nothing of the edge. nil = 404.
	Page http.Handler
	// Token is demanded as a bearer token of every call but GET /healthz; "" = none is.
	Token string
	// Address is where the admin listener listens (HOST:PORT). On a loopback address, calls under a foreign Host are
	// refused, so that a web page can't reach it through a name of its own.
	Address string
	// Stopping, when closed, ends the streams of GET /watch; nil = only their clients do.
	Stopping <-chan struct{}
	// Logger gets what can't be told to a caller, and of each change who made it from where; nil = discarded.
	Logger *slog.Logger
}

// New makes the handler of the admin listener.
func New(o Options) http.Handler {
	a := &api{Options: o, looking: make(chan struct{}, pastAtOnce)}
	if a.Standing == nil {
		a.Standing = func() Standing { return Standing{Role: "leader", Leader: string(o.Edge)} }
	}
	if a.Version == nil {
		a.Version = func(fsm.NodeID) string { return "" }
	}
	if a.Healthy == nil {
		a.Healthy = func() error { return nil }
	}
	if a.Logger == nil {
		a.Logger = slog.New(slog.DiscardHandler)
	}
	return newGuard(o, a.routes())
}

// api answers the routes.
type api struct {
	Options
	catalog  catalog
	watchers atomic.Int64
	looking  chan struct{} // places of those who look into the past
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	for path, answer := range map[string]answer{
		"/status":           a.status,
		"/providers":        a.providers,
		"/providers/{id}":   a.provider,
		"/models":           a.models,
		"/leases":           a.leases,
		"/leases/{id...}":   a.lease,
		"/queue":            a.queue,
		"/usage":            a.usage,
		"/requests/{id...}": a.request,
		"/config":           a.config,
		"/config/history":   a.history,
		"/healthz":          a.healthz,
		"/":                 notFound,
	} {
		mux.Handle(path, readOnly(a.respond(answer)))
	}
	mux.Handle("/nodes", a.nodesOrAdd())
	if a.AddJoin != nil {
		mux.Handle("/nodes/{id}/join", only(http.HandlerFunc(a.addJoin), http.MethodPost))
	}
	mux.Handle("/watch", readOnly(http.HandlerFunc(a.watch)))
	if a.Refresh != nil {
		mux.Handle("/refresh", only(http.HandlerFunc(a.refresh), http.MethodPost))
	}
	if a.Drain != nil {
		mux.Handle("/drain", only(http.HandlerFunc(a.drain), http.MethodPost))
	}
	if a.Evict != nil {
		mux.Handle("/queue/{id}/cancel", only(a.respond(a.cancelWaiter), http.MethodPost))
	}
	if a.Cluster != nil {
		a.clusterRoutes(mux)
	}
	if a.Page != nil {
		mux.Handle("/{$}", readOnly(a.Page))
		mux.Handle("/ui/", readOnly(a.Page))
	}
	if a.Metrics != nil {
		mux.Handle("/metrics", readOnly(a.Metrics))
	}
	return mux
}

func (a *api) healthz(*http.Request) (any, error) {
	if err := a.Healthy(); err != nil {
		return nil, &adminapi.Error{
			Code:    "failed",
			Message: fmt.Sprintf("edge %s can't do its work: %v", a.Edge, err),
			Cure:    "see the edge's log; after the cause is gone, restart edged",
			Status:  http.StatusServiceUnavailable,
		}
	}
	return adminapi.Health{Status: "ok"}, nil
}
