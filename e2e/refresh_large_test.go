package e2e

import (
	"fmt"
	"testing"
	"time"

	"iop/e2e/backend"
)

// The size of the cluster that a refresh has to be quick with.
const (
	largeNodes        = 1000
	largeProvidersPer = 5
	largeModels       = 2000
)

// enlarge gives a layout a large cluster beside its own nodes and models. All its providers have the capacity.
func enlarge(l *layout, capacity int) {
	nodes, models := l.nodeList(), l.modelList()
	for n := range largeNodes {
		providers := []any{}
		for p := range largeProvidersPer {
			providers = append(providers, map[string]any{
				"id": fmt.Sprintf("large-%04d-%d", n, p), "type": "demo", "adapter": "d", "models": []string{"served/large"}, "capacity": capacity,
			})
		}
		nodes = append(nodes, map[string]any{
			"id": fmt.Sprintf("large-%04d", n), "token_hash_sha256": sha(fmt.Sprint("token of ", n)),
			"adapters": []any{map[string]any{"id": "d", "type": "demo"}}, "providers": providers,
		})
	}
	for m := range largeModels {
		providers := map[string]string{}
		for i := range 3 {
			providers[fmt.Sprintf("large-%04d-%d", (m*7+i*331)%largeNodes, m%largeProvidersPer)] = "served/large"
		}
		models = append(models, map[string]any{"id": fmt.Sprintf("large-model-%04d", m), "providers": providers})
	}
	l.cluster = map[string]any{"nodes": nodes, "models": models}
}

// TestRefreshOfALargeCluster: 1,000 nodes, 5,000 providers and 2,000 models, of which every provider changes, while
// requests run, wait and come: each is served, and the report names all that changed and nothing else.
func TestRefreshOfALargeCluster(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 5, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.log = "warn"
	l.providers = append(l.providers, provider{id: "side", url: b.URL(), capacity: 4})
	l.models["side"] = []string{"side"}
	enlarge(&l, 1)
	w := newWorld(t, l)
	b.SetFor("passer-by", backend.Plan{})
	flights := []*flight{w.start(ask{tag: "r0"})}
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	for i := 1; i <= 3; i++ {
		flights = append(flights, w.queue(ask{tag: fmt.Sprint("r", i)}, i))
	}
	stop, slowest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		for {
			select {
			case <-stop:
				slowest <- most
				return
			default:
			}
			began := time.Now()
			if a := call(t.Context(), w.edge.openai, ask{model: "side", tag: "passer-by"}); a.status != 200 {
				t.Errorf("a request beside the refresh: %d %v %s", a.status, a.err, a.body)
			}
			most = max(most, time.Since(began))
		}
	}()
	change := func(l *layout) { l.providers[0].capacity = 4; enlarge(l, 2) }
	began := time.Now()
	dry := w.refresh(200, "dry_run", "?dry_run=true", change)
	dryTook := since(began)
	began = time.Now()
	r := w.refresh(200, "applied", "", change)
	took := since(began)
	await(t, "the waiters run", func() bool { return b.Stats().Held == 4 })
	close(stop)
	t.Logf("the dry run took %v, the refresh %v; the slowest request beside them %v", dryTook, took, <-slowest)
	for _, x := range []refreshReport{dry, r} {
		if n := len(x.ChangedProviders); n != largeNodes*largeProvidersPer+1 || len(x.ChangedPaths) != n || len(x.ChangedModels) != 0 {
			t.Errorf("%d changed providers, %d paths, models %v", n, len(x.ChangedPaths), x.ChangedModels)
		}
		if len(x.PushedNodes) != 1 || len(x.PendingNodes) != largeNodes {
			t.Errorf("pushed to %d nodes, pending %d", len(x.PushedNodes), len(x.PendingNodes))
		}
	}
	r.wantPath("nodes[large-0999].providers[large-0999-4].capacity", "live", 1, 2)
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
}
