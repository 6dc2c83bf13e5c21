//go:build !windows

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"iop/e2e/backend"
)

// TestADirectRequestPassesTheQueueBy: with the pool's queue full, a CLI provider that is addressed by its name answers at
// once, counts among the leases, and moves nobody who waits.
func TestADirectRequestPassesTheQueueBy(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.queue, l.edits = 1, map[string]any{}
	gate := t.TempDir() + "/open"
	l.edits["nodes[0].adapters[1]"] = map[string]any{
		"id": "a-cli", "type": "cli",
		"command": []string{"sh", "-c", `while [ ! -e "$0" ]; do sleep 0.05; done; printf 'said by %s' "$1"`, gate, "{model}"},
	}
	l.edits["nodes[0].providers[1]"] = map[string]any{"id": "agent", "type": "cli", "adapter": "a-cli", "models": []string{"small", "large"}}
	w := newWorld(t, l)
	flights := []*flight{w.start(ask{tag: "runs"})}
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	flights = append(flights, w.queue(ask{tag: "waits"}, 1))
	if a := w.ask(ask{tag: "too many"}); a.status != 429 {
		t.Fatalf("the queue is not full: %d", a.status)
	}
	names := []string{"provider:agent", "provider:agent/large", "provider:agent/small"}
	for _, name := range names {
		flights = append(flights, w.start(ask{model: name}))
	}
	held := w.awaitLeases(1 + len(names))
	count := map[string]int{}
	for _, lease := range held {
		count[lease.Provider+" "+lease.Model]++
	}
	if got, want := fmt.Sprint(count["agent provider:agent"]), fmt.Sprint(len(names)); got != want {
		t.Errorf("the leases are %v", count)
	}
	if p := w.provider("agent"); p.InFlight != len(names) || p.Queued != 0 {
		t.Errorf("%+v", p)
	}
	if n := w.pending(); n != 1 {
		t.Errorf("%d wait", n)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		a := flights[2+i].wait(t)
		text := []string{"small", "large", "small"}[i]
		if a.status != 200 || a.text() != "said by "+text || !bytes.Contains(a.body, []byte(`"model":"`+name+`"`)) || a.header.Get("X-Iop-Provider") != "agent" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := w.ask(ask{model: "provider:p1"}); a.status != 404 || !bytes.Contains(a.body, []byte("bounded capacity")) {
		t.Errorf("a provider of the pool: %d %s", a.status, a.body)
	}
	b.LetAll()
	for _, f := range flights[:2] {
		f.wait(t)
	}
	w.awaitIdle()
}
