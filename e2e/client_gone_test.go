package e2e

import (
	"testing"
	"time"

	"iop/e2e/backend"
)

// inferenceRoutes are the routes whose runs take a slot.
var inferenceRoutes = map[string]string{
	"chat": "/v1/chat/completions", "completions": "/v1/completions", "embeddings": "/v1/embeddings",
	"responses": "/v1/responses",
}

// TestEachEndReturnsItsLeaseOnce/...: whatever ends a run, its slot is free afterwards, and the log that the edge leaves
// has as many returns as grants (checked at the end of each world).
func TestEachEndReturnsItsLeaseOnce(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(*testing.T){
		"Success": endSuccess, "ClientGoneWhileQueued": endClientGoneWhileQueued,
		"ClientGoneBeforeTheFirstByte": endClientGoneBeforeTheFirstByte, "ClientGoneInMidStream": endClientGoneInMidStream,
		"BackendNeverAnswersClientLeaves": endNeverAnswers, "BackendError": endBackendError,
		"ConnectRefused": endConnectRefused, "ConnectRefusedFallsOver": endFallsOver, "BusyKeepsItsPlace": endBusyKeepsItsPlace,
		"BackendDropsInMidStream": endDropInMidStream, "BackendDropsBeforeTheHead": endDropBeforeHead,
		"BackendDropsAPlainAnswer": endDropPlain, "NodeSigkilled": endNodeSigkilled, "NodeStopped": endNodeStopped,
		"NodeStoppedWhileRunning": endNodeStoppedWhileRunning,
		"EdgeStopped":             endEdgeStopped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}

func endSuccess(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Usage: true}})
	w := newWorld(t, shared(b, 1))
	for name, path := range inferenceRoutes {
		a := w.want(200, ask{path: path, tag: name})
		if modelOf(&a) != "m" {
			t.Errorf("%s: the answer names the model %q", name, modelOf(&a))
		}
		for _, h := range []string{"x-request-id", "x-iop-provider", "x-iop-node", "x-iop-queue-ms", "x-iop-lease"} {
			if a.header.Get(h) == "" {
				t.Errorf("%s: the answer lacks %s", name, h)
			}
		}
		w.awaitIdle()
		if name != "embeddings" {
			a = w.want(200, ask{path: path, tag: name, stream: true})
			if a.text() != " 1 2 3" {
				t.Errorf("%s: streamed %q", name, a.text())
			}
			w.awaitIdle()
		}
	}
	w.grants = 7
}

func endClientGoneWhileQueued(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 1))
	first := w.start(ask{tag: "first"})
	w.awaitLeases(1)
	for _, stream := range []bool{false, true} {
		second := w.queue(ask{tag: "second", stream: stream}, 1)
		second.leave()
		w.awaitPending(0)
	}
	third := w.queue(ask{tag: "third"}, 1)
	b.LetAll()
	for _, f := range []*flight{first, third} {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
	if n := b.Stats().Total; n != 2 {
		t.Errorf("%d runs, want those of the clients that stayed", n)
	}
	w.grants = 2
}

func endClientGoneBeforeTheFirstByte(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 1))
	n := 0
	for name, path := range inferenceRoutes {
		for _, stream := range []bool{false, true} {
			f := w.start(ask{path: path, tag: name, stream: stream})
			await(t, "the run waits at the backend", func() bool { return b.Stats().Held == 1 })
			f.leave()
			n++
			await(t, "the backend sees the abort", func() bool { return b.Stats().Aborted == n })
			w.awaitIdle()
		}
	}
	w.grants = uint64(n)
}

func endClientGoneInMidStream(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 2}})
	w := newWorld(t, shared(b, 1))
	n := 0
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		for range rounds(3, 30) {
			s := w.open(ask{path: path, tag: "leaver"})
			s.next()
			s.leave()
			n++
			await(t, "the backend sees the abort", func() bool { return b.Stats().Aborted == n })
			w.awaitIdle()
		}
	}
	// The same while tokens flow: the client leaves at no particular moment.
	b.Set(backend.Plan{Tokens: 100_000, Pace: 100 * time.Microsecond})
	for range rounds(5, 50) {
		s := w.open(ask{tag: "leaver"})
		s.next()
		s.leave()
		n++
		await(t, "the backend sees the abort", func() bool { return b.Stats().Aborted == n })
		w.awaitIdle()
	}
	w.grants = uint64(n)
}

func endNeverAnswers(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Never: true}})
	w := newWorld(t, shared(b, 1))
	never := w.start(ask{tag: "never"})
	await(t, "the run is at the backend", func() bool { return b.Stats().Current == 1 })
	b.Set(backend.Plan{})
	next := w.queue(ask{tag: "next"}, 1)
	never.leave()
	a := next.wait(t)
	a.want(t, 200)
	w.awaitIdle()
	if n := b.Stats().Aborted; n != 1 {
		t.Errorf("%d aborts at the backend", n)
	}
	w.grants = 2
}
