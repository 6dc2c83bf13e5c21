package e2e

import (
	"fmt"
	"testing"

	"iop/e2e/backend"
)

// TestUsageIsCountedOnce: what backends report as usage is counted once per request, from plain answers and from the last
// chunk of streams (the one without choices), under the caller's reference, never under the token itself.
func TestUsageIsCountedOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 7, Usage: true}})
	l := shared(b, 2)
	l.tokens = map[string]string{"app-a": "key-a", "app-b": "key-b"}
	w := newWorld(t, l)
	for i := range 4 {
		w.want(200, ask{tag: fmt.Sprint("r", i), stream: i%2 == 0, token: "key-a"})
	}
	w.want(200, ask{tag: "other", token: "key-b"})
	w.want(200, ask{tag: "other", token: "key-b", model: "ornith-fast", path: "/v1/embeddings"})
	w.awaitIdle()
	for ref, want := range map[string][2]float64{"app-a": {4 * 5, 4 * 7}, "app-b": {5 + 2, 7}} {
		label := `token_ref="` + ref + `"`
		in, out := w.metric("iop_tokens_in_total", label), w.metric("iop_tokens_out_total", label)
		if in != want[0] || out != want[1] {
			t.Errorf("%s: %v tokens in, %v out, want %v", ref, in, out, want)
		}
	}
	if n := w.metric("iop_tokens_out_total", "key-"); n != 0 {
		t.Error("a token is a label")
	}
}
