package admin

import (
	"context"
	"encoding/json"
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
	// Program is the version of the edge's program.
	Program string
	// Versions are those of the noded of nodes that have a link to this edge; nil = unknown for all.
	Versions func() map[fsm.NodeID]string
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
	// History answers GET /config/history, the newest first; whole = there is no more that it could find. nil = it is empty.
	History func(context.Context) (list []adminapi.ConfigRevision, whole bool, err error)
	// Revision answers GET /config/history/{revision}: its document; false = it is not kept. nil = none is.
	Revision func(context.Context, fsm.Revision) (json.RawMessage, bool)
	// Pulse gives the samples with numbers in (after, until], and the number of the newest there is; until 0 = no bound.
	// nil = there are none.
	Pulse func(after, until uint64) (samples []adminapi.Sample, newest uint64)
	// Past tells what was; nil = nothing is told.
	Past Past
	// Cluster shows and changes the members, under /cluster; nil = there is no such route.
	Cluster Cluster
	// Metrics serves GET /metrics; nil = 404.
	Metrics http.Handler
	// Page serves GET / and below /ui/ without a token: it holds nothing of the edge. nil = 404.
	Page http.Handler
	// Token is demanded as a bearer token of every call but GET /healthz and those of Page; "" = none is.
	Token string
	// ViewToken is as good as Token to read, but not to change anything, nor to take a backup; "" = there is none.
	ViewToken string
	// Address is where the admin listener listens (HOST:PORT). On a loopback address, calls under a foreign Host are
	// refused, so that a web page can't reach it through a name of its own.
	Address string
	// Stopping, when closed, ends the streams of GET /watch; nil = only their clients do.
	Stopping <-chan struct{}
	// Changed is told of each change that somebody made or was refused, by its name, which is ours; nil = nobody is.
	Changed func(what string, done bool)
	// Logger gets what can't be told to a caller, and of each change who made it from where; nil = discarded.
	Logger *slog.Logger
}

// New makes the handler of the admin listener.
func New(o Options) http.Handler { return newGuard(newAPI(o)) }

func newAPI(o Options) *api {
	a := &api{Options: o, looking: make(chan struct{}, pastAtOnce), live: newLive()}
	if a.Standing == nil {
		a.Standing = func() Standing { return Standing{Role: "leader", Leader: string(o.Edge)} }
	}
	if a.Versions == nil {
		a.Versions = func() map[fsm.NodeID]string { return nil }
	}
	if a.Healthy == nil {
		a.Healthy = func() error { return nil }
	}
	if a.Changed == nil {
		a.Changed = func(string, bool) {}
	}
	if a.Logger == nil {
		a.Logger = slog.New(slog.DiscardHandler)
	}
	return a
}

// api answers the routes.
type api struct {
	Options
	catalog  catalog
	watchers atomic.Int64
	looking  chan struct{} // places of those who look into the past
	live     *live
	members  memberNews
	brake    brake
	refusals throttle
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	for _, x := range a.table() {
		mux.Handle(x.path, a.door(&x))
	}
	return mux
}

// table has all routes. What an edge can't do has none.
func (a *api) table() []route {
	list := []route{
		{path: "/healthz", read: a.respond(a.healthz), open: true},
		{path: "/live", read: http.HandlerFunc(a.watchLive)},
		{path: "/watch", read: http.HandlerFunc(a.watch)},
		{path: "/debug/goroutines", read: http.HandlerFunc(a.goroutines)},
	}
	for path, answer := range map[string]answer{
		"/status":                    a.status,
		"/providers":                 a.providers,
		"/providers/{id}":            a.provider,
		"/models":                    a.models,
		"/leases":                    a.leases,
		"/leases/{id...}":            a.lease,
		"/queue":                     a.queue,
		"/usage":                     a.usage,
		"/requests/{id...}":          a.request,
		"/pulse":                     a.pulse,
		"/config":                    a.config,
		"/config/history":            a.history,
		"/config/history/{revision}": a.revision,
		"/":                          notFound,
	} {
		list = append(list, route{path: path, read: a.respond(answer)})
	}
	list = append(list, a.changes()...)
	if a.Cluster != nil {
		list = append(list, a.clusterRoutes()...)
	}
	if a.Page != nil {
		list = append(list, route{path: "/{$}", read: a.Page, open: true}, route{path: "/ui/", read: a.Page, open: true})
	}
	if a.Metrics != nil {
		list = append(list, route{path: "/metrics", read: a.Metrics})
	}
	return list
}

// changes are the routes that change something, those of the cluster apart.
func (a *api) changes() []route {
	nodes := route{path: "/nodes", read: a.respond(a.nodes)}
	if a.AddNode != nil {
		nodes.change, nodes.method, nodes.what = http.HandlerFunc(a.addNode), http.MethodPost, "nodes add"
	}
	list := []route{nodes}
	for _, x := range []struct {
		there bool
		route
	}{
		{a.AddJoin != nil, route{path: "/nodes/{id}/join", change: http.HandlerFunc(a.addJoin), what: "join token"}},
		{a.Refresh != nil, route{path: "/refresh", change: http.HandlerFunc(a.refresh), what: "refresh"}},
		{a.Drain != nil, route{path: "/drain", change: http.HandlerFunc(a.drain), what: "drain"}},
		{a.Evict != nil, route{path: "/queue/{id}/cancel", change: a.respond(a.cancelWaiter), what: "queue cancel"}},
	} {
		if x.there {
			x.method = http.MethodPost
			list = append(list, x.route)
		}
	}
	return list
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
