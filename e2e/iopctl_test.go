package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestIopctlShowsWhatIs: each command shows the admin listener's JSON with its documented keys, lists never null, and a
// table that names the same things.
func TestIopctlShowsWhatIs(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	w := newEdgeOnly(t, l)
	for _, c := range [][]string{{"status"}, {"leases", "list"}, {"queue", "list"}, {"providers", "list"}, {"nodes", "list"}} {
		out := w.iopctl(0, append(c, "-o", "json")...)
		if strings.Contains(out, "null,") && !strings.Contains(out, "deadline_in_ms") && !strings.Contains(out, "long_capacity") {
			t.Errorf("%v of an empty edge has a null: %s", c, out)
		}
	}
	w.startNode("n1")
	w.awaitLink("n1")
	w.start(ask{tag: "holder"})
	lease := w.awaitLeases(1)[0]
	w.queue(ask{tag: "waiter", model: "ornith-fast"}, 1)
	for _, c := range []struct {
		args  []string
		keys  string
		words []string
	}{
		{[]string{"status"}, "edge role leader term applied_index revision queue providers links", []string{"edge-1", "p1"}},
		{[]string{"leases", "list"}, "leases", []string{"p1", lease.Request}},
		{[]string{"leases", "inspect", fmt.Sprint(lease.ID)}, "id request model provider node class state generation granted_index age_ms", []string{lease.Request}},
		{[]string{"queue", "list"}, "pending waiters", []string{"ornith-fast"}},
		{[]string{"providers", "list"}, "providers", []string{"p1", "n1"}},
		{[]string{"nodes", "list"}, "nodes", []string{"n1"}},
	} {
		out := w.iopctl(0, append(c.args, "-o", "json")...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Errorf("%v: %v in %s", c.args, err, out)
			continue
		}
		for _, k := range strings.Fields(c.keys) {
			if _, ok := v[k]; !ok {
				t.Errorf("%v -o json lacks %s: %s", c.args, k, out)
			}
		}
		wantWords(t, strings.Join(c.args, " "), w.iopctl(0, append(c.args, "-o", "table")...), c.words...)
	}
	wantWords(t, "unknown lease", w.iopctl(1, "leases", "inspect", "4711"), "4711")
	w.iopctl(2, "no-such-command")
	w.iopctl(1, "status", "--edge", "127.0.0.1:1", "--timeout", "2s")
	b.LetAll()
	w.awaitIdle()
}

// TestDevAnswers: iopctl dev is a whole gateway in one process: the curl line that it prints works.
func TestDevAnswers(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, layout{})
	p := w.track(spawn(t, "iopctl dev", nil, program(t, "iopctl"), "dev", "--port", "0", "--admin-port", "0",
		"--no-detect", "--data-dir", w.path("dev")))
	var address, model string
	await(t, "dev prints a curl line", func() bool {
		said := p.out.String()
		address, model = between(said, "http://", "/v1/chat/completions"), between(said, `"model":"`, `"`)
		return address != "" && model != ""
	})
	for _, stream := range []bool{false, true} {
		var a answer
		await(t, "dev answers", func() bool {
			a = call(t.Context(), address, ask{model: model, stream: stream})
			return a.status == 200 && a.clean
		})
		if len(strings.Fields(a.text())) < 3 {
			t.Errorf("the demo says only %q", a.text())
		}
	}
	terminate(t, p)
	if code := p.code(t); code != 0 {
		t.Errorf("dev ended with code %d", code)
	}
}

// between is what stands between the last occurrence of a before the first following b; "" = not there.
func between(s, a, b string) string {
	s = strings.ReplaceAll(s, " ", "")
	i := strings.Index(s, b)
	if a == `"model":"` {
		j := strings.Index(s, a)
		if j < 0 {
			return ""
		}
		s = s[j+len(a):]
		if i = strings.Index(s, b); i < 0 {
			return ""
		}
		return s[:i]
	}
	if i < 0 {
		return ""
	}
	j := strings.LastIndex(s[:i], a)
	if j < 0 {
		return ""
	}
	return s[j+len(a) : i]
}

// TestDemoProvider: the built-in backend through the whole system: the words it says, in the shapes that clients want.
func TestDemoProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, layout{
		providers: []provider{{id: "demo", capacity: 2, demo: map[string]any{"words": 12, "word_interval_ms": 1, "first_token_ms": 1}}},
		models:    map[string][]string{"m": {"demo"}},
	})
	plain := w.want(200, ask{})
	if n := len(strings.Fields(plain.text())); n != 12 {
		t.Errorf("%d words: %q", n, plain.text())
	}
	streamed := w.want(200, ask{stream: true})
	if n := len(strings.Fields(streamed.text())); n != 12 {
		t.Errorf("%d words streamed: %q", n, streamed.text())
	}
	if !bytes.HasSuffix(bytes.TrimSpace(streamed.body), []byte("data: [DONE]")) {
		t.Errorf("the stream ends with %q", tail(string(streamed.body), 2))
	}
	if n := plain.header.Get("Content-Length"); n != "" && n != strconv.Itoa(len(plain.body)) {
		t.Errorf("Content-Length %s of %d bytes", n, len(plain.body))
	}
	w.awaitIdle()
}
