package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// TestClientsComeAgainElsewhere: clients whose replica is killed come again at another one: with their Idempotency-Key, at
// once and until they are let in; without one, with the same body, at once and before the cluster knows that their replica is
// gone. Both find their places, in front of who came later. The key does not open a place for another request, and a client
// that left by itself has none to find.
func TestClientsComeAgainElsewhere(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.grace, l.reattach, l.heartbeat, l.missed = patience, 15*time.Second, time.Second, 4
	c := newCluster(t, l, 3)
	await(t, "the level of today", func() bool { return c.members(0).Level == c.members(0).Members[0].Level })
	gone := c.leader()
	w, other := c.at(gone), c.at(othersOf(gone)[0])
	asks := []ask{{tag: "runs"}, {tag: "keyed", key: "k1"}, {tag: "plain"}, {tag: "later"}, {tag: "left", key: "k2"}, {tag: "stays"}}
	at := []*world{other, w, w, other, w, other}
	var flights []*flight
	for k, a := range asks {
		flights = append(flights, at[k].queue(a, k))
		if k == 0 {
			await(t, "the first runs", func() bool { return b.Stats().Held == 1 })
		}
	}
	flights[4].leave()
	other.awaitPending(4)
	c.kill(gone)
	for _, k := range []int{1, 2} {
		if a := flights[k].wait(t); a.status != 0 {
			t.Errorf("%s got %d from a killed replica", a.tag, a.status)
		}
	}
	plain := c.at(othersOf(gone)[1]).start(asks[2])
	tries := 0
	var keyed *flight
	await(t, "the client with the key is let in", func() bool {
		tries++
		keyed = other.start(asks[1])
		await(t, "it waits or is told", func() bool { return keyed.over() || placed(other, c.id(othersOf(gone)[0])) })
		if !keyed.over() {
			return true
		}
		keyed.got.wantError(t, 409, "in_progress_elsewhere")
		keyed.got.wantRetry(t)
		return false
	})
	t.Logf("let in at try %d", tries)
	if a := other.ask(ask{tag: "another", key: "k1"}); a.status != 409 {
		t.Errorf("another request with a key that is in use got %d", a.status)
	}
	again := c.at(othersOf(gone)[1]).start(asks[4])
	await(t, "all wait, and whom the second client without a key might have been", func() bool {
		ws := other.waiters()
		return len(ws) == 6 && ws[1].State == "waiting" && slices.IndexFunc(ws, detachedWaiter) == 4
	})
	b.LetAll()
	for _, f := range []*flight{flights[0], keyed, plain, flights[3], flights[5], again} {
		a := f.wait(t)
		a.want(t, 200)
	}
	if got := fmt.Sprint(b.Tags()); got != "[runs keyed plain later stays left]" {
		t.Errorf("served in the order %s", got)
	}
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("at the backend: %+v", s)
	}
	other.awaitIdle()
	c.start(gone)
	c.agree()
}

// placed tells whether the first in line waits at an edge.
func placed(w *world, edge string) bool {
	ws := w.waiters()
	return len(ws) > 0 && ws[0].State == "waiting" && ws[0].Edge == edge
}

func detachedWaiter(w adminapi.Waiter) bool { return w.State == "detached" }

// TestSDKFindsItsPlaceElsewhere: a client that does what the official SDKs do by themselves, which is two retries, after half a
// second or what Retry-After says, is served in its place after its replica was killed, if it has an Idempotency-Key.
func TestSDKFindsItsPlaceElsewhere(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.grace, l.reattach, l.heartbeat, l.missed = patience, patience, time.Second, 4
	c := newCluster(t, l, 3)
	gone := c.leader()
	o := othersOf(gone)
	other := c.at(o[0])
	b.SetFor("quick", backend.Plan{})
	for range 30 { // the queue moves fast: that is what Retry-After usually says
		other.want(200, ask{tag: "quick"})
	}
	runs := other.queue(ask{tag: "runs"}, 0)
	await(t, "the first runs", func() bool { return b.Stats().Held == 1 })
	client := make(chan answer, 1)
	go func() { client <- c.asSDK(ask{tag: "client", key: "k"}, gone, o[0], o[1]) }()
	other.awaitPending(1)
	later := other.queue(ask{tag: "later"}, 2)
	c.kill(gone)
	var got *answer
	await(t, "the client is at its place elsewhere, or gives up", func() bool {
		select {
		case a := <-client:
			got = &a
		default:
		}
		return got != nil || placed(other, c.id(o[0])) || placed(other, c.id(o[1]))
	})
	if got != nil {
		t.Fatalf("it gave up with %d %s, Retry-After %s", got.status, got.code(), got.header.Get("Retry-After"))
	}
	b.LetAll()
	for _, a := range []answer{runs.wait(t), <-client, later.wait(t)} {
		a.want(t, 200)
	}
	if got := fmt.Sprint(b.Tags()[30:]); got != "[runs client later]" {
		t.Errorf("served in the order %s", got)
	}
	other.awaitIdle()
	c.start(gone)
}

// asSDK asks one replica after the other, with the pauses of the official SDKs in between.
func (c *cluster) asSDK(a ask, at ...int) (out answer) {
	for n, i := range at {
		out = call(context.Background(), c.own(i, 8080), a)
		if out.status != 0 && out.status != 409 && out.status < 500 || n == len(at)-1 {
			break
		}
		pause := 500 * time.Millisecond << n
		if ms, err := strconv.Atoi(out.header.Get("retry-after-ms")); err == nil && ms > 0 && ms <= 60_000 {
			pause = time.Duration(ms) * time.Millisecond
		}
		time.Sleep(pause)
	}
	return out
}
