//go:build unix

package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestCoders: codex and claude, as npm has them, work through the gateway, offline where the system lets a test be.
func TestCoders(t *testing.T) {
	at := packages(t, "clients/coders")
	if offline(t) {
		return
	}
	for _, c := range coders(2 * time.Second) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Run("has its answer", func(t *testing.T) {
				w := coderWorld(t, provider{id: "p1", demo: map[string]any{"words": 10}})
				if got := c.ask(t, at, w, "Say something.", false).wait(t); !strings.Contains(got, "demo provider") {
					t.Errorf("it heard %q", got)
				}
				w.awaitIdle()
			})
			b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
			w := coderWorld(t, provider{id: "p1", url: b.URL()})
			t.Run("gives its slot back when it is interrupted", func(t *testing.T) {
				interrupted(t, w, c.ask(t, at, w, "Say something.", false))
				await(t, "the backend knows", func() bool { return b.Stats().Current == 0 && b.Stats().Aborted > 0 })
			})
			t.Run("waits longer than it bears silence", func(t *testing.T) {
				b.LetAll()
				b.SetFor("holder", backend.Plan{Never: true})
				holder := w.start(ask{tag: "holder", token: coderKey})
				if got := waited(t, w, holder, c.ask(t, at, w, "Say something.", false), func() {}); got != "1 2 3" {
					t.Errorf("it heard %q", got)
				}
			})
		})
	}
}

// TestCodersOnARealBackend is TestCoders with a real llama-server that counts. Skipped without it, as TestMainJobOnARealBackend.
func TestCodersOnARealBackend(t *testing.T) {
	server, model := os.Getenv("IOP_LLAMA_SERVER"), os.Getenv("IOP_LLAMA_MODEL")
	if server == "" || model == "" {
		t.Skip("no IOP_LLAMA_SERVER and IOP_LLAMA_MODEL")
	}
	at := packages(t, "clients/coders")
	if offline(t) {
		return
	}
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, "%d ", i+1)
	}
	w := newEmptyWorld(t, layout{})
	url := startLlama(t, w, server, model, "-np", "1", "-c", "131072", "--sse-ping-interval", "1")
	llama := w.all[0]
	w.layout = coderLayout(provider{id: "llama", url: url, kind: "llamacpp"})
	w.startEdge()
	w.startNode("n1")
	w.awaitLink("n1")
	for _, c := range coders(10 * time.Second) { // the pings of llama-server come between its batches
		t.Run(c.name, func(t *testing.T) {
			t.Run("has its answer", func(t *testing.T) {
				if got := c.ask(t, at, w, "Count.", true).wait(t); got != strings.TrimSpace(want.String()) {
					t.Errorf("it heard %q", got)
				}
				w.awaitIdle()
			})
			t.Run("gives its slot back when it is interrupted", func(t *testing.T) {
				interrupted(t, w, c.ask(t, at, w, "Count.", false)) // all its instructions take this model minutes
			})
			t.Run("waits longer than it bears silence", func(t *testing.T) {
				freeze(t, llama)
				holder := w.start(ask{token: coderKey})
				if got := waited(t, w, holder, c.ask(t, at, w, "Count.", true), func() { thaw(t, llama) }); got != strings.TrimSpace(want.String()) {
					t.Errorf("it heard %q", got)
				}
			})
		})
	}
}

// coderKey is a coder's key for the gateway.
const coderKey = "key-of-app"

// coderLayout has one model for coders with one slot.
func coderLayout(p provider) layout {
	return layout{
		providers: []provider{p}, models: map[string][]string{"m": {p.id}},
		keepalive: 500 * time.Millisecond, threshold: 1_000_000,
		tokens: map[string]string{"app": coderKey},
	}
}

func coderWorld(t *testing.T, p provider) *world { return newWorld(t, coderLayout(p)) }

// interrupted presses Ctrl-C while a coder's run has the slot, and wants the coder to end and the slot to be free.
func interrupted(t *testing.T, w *world, x *work) {
	t.Helper()
	await(t, "its run has the slot", func() bool { return len(w.leases()) == 1 || x.ended() })
	if x.ended() {
		t.Fatalf("it ended:\n%s", clipped(x.out.String()))
	}
	x.signal(syscall.SIGINT)
	await(t, x.c.name+" ends", x.ended)
	w.awaitIdle()
}

// waited keeps the only slot while a coder waits for longer than it would bear silence, gives it free once first is
// done, and returns what the coder heard.
func waited(t *testing.T, w *world, holder *flight, x *work, first func()) string {
	t.Helper()
	await(t, "it waits behind another one", func() bool { return w.pending() == 1 && len(w.leases()) == 1 || x.ended() })
	select {
	case <-time.After(x.c.idle + 2*time.Second): // its clock is the one that is tested
	case <-x.done:
	}
	if x.ended() || w.pending() != 1 {
		t.Fatalf("it did not wait: %d pending\n%s", w.pending(), clipped(x.out.String()))
	}
	first()
	holder.leave()
	got := x.wait(t)
	w.awaitIdle()
	return got
}
