package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"iop/e2e/backend"
)

// streamed is a stream's body as the client gets it.
func streamed(p backend.Plan) string {
	return string(mapped(slices.Concat(p.Frames("/v1/chat/completions", served("p1"))...)))
}

// TestQuorumLossSparesStreams: two of three replicas stand still. The third serves its streams to their end, tells new
// requests that there is no leader, holds none of them, and keeps its waiters; when the others go on, it comes back by
// itself, and all is served and given back.
func TestQuorumLossSparesStreams(t *testing.T) {
	t.Parallel()
	plan := backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}
	b := newBackend(t, backend.Options{Limit: 4, Default: plan})
	l := shared(b, 4)
	l.grace = 10 * time.Second
	c := newCluster(t, l, 3)
	for round := range 2 {
		left := c.leader() // in the first round the leader is left, then a follower
		if round == 1 {
			left = c.followers()[0]
		}
		quorumLoss(t, c, b, streamed(plan), left, fmt.Sprint("round", round))
	}
	c.agree()
}

func quorumLoss(t *testing.T, c *cluster, b *backend.Backend, want string, left int, name string) {
	t.Helper()
	w := c.at(left)
	begun := b.Stats().Total
	var streams, waiting []*flight
	for i := range 4 {
		streams = append(streams, w.start(ask{tag: fmt.Sprint(name, "stream", i), stream: true}))
	}
	await(t, "four streams run", func() bool { return b.Stats().Held == 4 })
	for i := range 3 {
		waiting = append(waiting, w.queue(ask{tag: fmt.Sprint(name, "wait", i), stream: true}, i+1))
	}
	for i := range 3 {
		if i != left {
			freeze(t, c.at(i).edge.process)
		}
	}
	await(t, "it is not ready without a majority", func() bool { return get(t, w.edge.openai, "/readyz") == http.StatusServiceUnavailable })
	if s := get(t, w.edge.openai, "/healthz"); s != http.StatusOK {
		t.Errorf("/healthz: %d", s)
	}
	await(t, "a new request is told that there is no leader", func() bool {
		began := time.Now()
		a := w.ask(ask{tag: name + "refused"})
		a.wantError(t, http.StatusServiceUnavailable, "no_leader")
		a.wantRetry(t)
		return time.Since(began) < time.Second
	})
	w.iopctl(5, "providers", "drain", "p1")
	b.Let(4)
	for _, f := range streams {
		a := f.wait(t)
		a.want(t, 200)
		if string(a.body) != want {
			t.Errorf("%s got %q, want %q", a.tag, a.body, want)
		}
	}
	if n := b.Stats().Total - begun; n != 4 {
		t.Errorf("%d runs while nothing could be granted", n)
	}
	for _, f := range waiting {
		if f.over() {
			t.Errorf("%s did not wait: %d %s", f.ask.tag, f.got.status, f.got.body)
		}
	}
	for i := range 3 {
		if i != left {
			thaw(t, c.at(i).edge.process)
		}
	}
	await(t, "who waited runs", func() bool { return b.Stats().Held == 3 })
	b.Let(3)
	for _, f := range waiting {
		a := f.wait(t)
		a.want(t, 200)
		if string(a.body) != want {
			t.Errorf("%s got %q, want %q", a.tag, a.body, want)
		}
	}
	await(t, "it is ready again", func() bool { return get(t, w.edge.openai, "/readyz") == http.StatusOK })
	c.awaitLinks("n1")
	w.awaitIdle()
	if _, ran := b.Run(name + "refused"); ran {
		t.Error("a refused request ran")
	}
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("at the backend: %+v", s)
	}
}

// get returns the status of a GET.
func get(t testing.TB, address, path string) int {
	t.Helper()
	res, err := newClient().Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// TestIsolatedReplicaComesBackInPlace: the others end the session of a replica that they do not hear of. Its streams go on
// to their end and stay counted meanwhile; one of its waiting clients comes again elsewhere, with its Idempotency-Key, and
// has its place there; the others have theirs when the replica is back, in front of what came later.
func TestIsolatedReplicaComesBackInPlace(t *testing.T) {
	t.Parallel()
	plan := backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}
	b := newBackend(t, backend.Options{Limit: 2, Default: plan})
	l := shared(b, 2)
	l.grace, l.reattach = 10*time.Second, time.Minute
	c := newCluster(t, l, 3)
	alone := c.followers()[0]
	w, other := c.at(alone), c.at(c.leader())
	var streams, waiting []*flight
	for i := range 2 {
		streams = append(streams, w.start(ask{tag: fmt.Sprint("stream", i), stream: true}))
	}
	await(t, "two streams run", func() bool { return b.Stats().Held == 2 })
	for i := range 3 {
		a := ask{tag: fmt.Sprint("wait", i), stream: true, key: fmt.Sprint("key", i)}
		waiting = append(waiting, w.queue(a, i+1))
	}
	c.apart(alone)
	await(t, "its session is ended", func() bool {
		ws := other.waiters()
		return len(ws) == 3 && ws[0].State == "detached" && ws[2].State == "detached"
	})
	later := other.queue(ask{tag: "later", stream: true}, 4)
	again := other.start(waiting[1].ask)
	await(t, "the client that came again has its place", func() bool {
		ws := other.waiters()
		return len(ws) == 4 && ws[1].State == "waiting" && ws[1].Edge == c.id(c.leader(othersOf(alone)...))
	})
	if p := other.provider("p1"); p.InFlight != 2 {
		t.Errorf("%d in flight, want the two that run", p.InFlight)
	}
	b.Let(1)
	await(t, "the next one runs", func() bool { return b.Stats().Total == 3 })
	c.heal()
	await(t, "the others wait again", func() bool {
		for _, x := range other.waiters() {
			if x.State != "waiting" {
				return false
			}
		}
		return true
	})
	a := waiting[1].wait(t) // its place is the other client's now
	a.wantError(t, http.StatusConflict, "in_progress_elsewhere")
	c.awaitLinks("n1")
	for i := range 3 {
		b.Let(1)
		await(t, "the next one runs", func() bool { return b.Stats().Total == 4+i })
	}
	b.LetAll()
	for _, f := range slices.Concat(streams, []*flight{waiting[0], waiting[2], again, later}) {
		a := f.wait(t)
		a.want(t, 200)
		if string(a.body) != streamed(plan) {
			t.Errorf("%s got %q", a.tag, a.body)
		}
	}
	if got, want := b.Tags(), []string{"wait1", "wait0", "wait2", "later"}; !slices.Equal(got[2:], want) {
		t.Errorf("served in the order %v, want %v", got[2:], want)
	}
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("at the backend: %+v", s)
	}
	other.awaitIdle()
	c.agree()
}

func othersOf(i int) []int {
	return slices.DeleteFunc([]int{0, 1, 2}, func(j int) bool { return j == i })
}
