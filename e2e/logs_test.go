package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

// Texts that no log and no span may show.
const (
	secretPrompt = "PLANTED-PROMPT-of-a-client"
	secretAnswer = "PLANTED-ANSWER-of-a-model"
	secretToken  = "PLANTED-TOKEN-of-alice"
)

// aboutRuns are messages of lines about one request.
var aboutRuns = []string{"request", "run", "not run", "run failed", "response not stored", "request not admitted", "gate refused a run that the edge had granted"}

// TestLogLinesNameTheirRequest: requests end in every way there is. Each line about one of them, at the edge and at the
// nodes, has the id that its client knows, and that of its trace; none shows what was asked, answered or kept secret, and no
// span does.
func TestLogLinesNameTheirRequest(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			logsOfAllEnds(t, format)
		})
	}
}

// told is what a test knows of a request.
type told struct {
	id, trace, end string
	atNode         bool
}

func logsOfAllEnds(t *testing.T, format string) {
	echo := []byte(fmt.Sprintf(`{"error":{"message":"can't do %s","type":"server_error","code":"%s"}}`, secretPrompt, secretPrompt))
	answer := []string{secretAnswer, secretAnswer, secretAnswer}
	b := newBackend(t, backend.Options{Default: backend.Plan{Text: answer, Usage: true}})
	b.SetFor("500", backend.Plan{Status: 500, Body: echo})
	b.SetFor("400", backend.Plan{Status: 400, Body: echo})
	b.SetFor("broken", backend.Plan{Text: answer, Drop: backend.AfterTokens, At: 2})
	b.SetFor("rude", backend.Plan{Raw: []byte("HTTP/1.1 200 OK " + secretPrompt + "\r\n" + secretPrompt + "\r\n\r\n")})
	b.SetFor("no head", backend.Plan{Drop: backend.BeforeHead})
	b.SetFor("held", backend.Plan{Text: answer, Hold: backend.BeforeHead})
	l := layout{
		providers: []provider{
			{id: "p1", url: b.URL(), capacity: 8},
			{id: "dead", node: "n2", url: deadAddress(t)},
			{id: "slot", url: b.URL()},
			{id: "agent", node: "n2", command: []string{"sh", "-c", "cat >&2; exit 3"}},
		},
		models: map[string][]string{"m": {"p1"}, "lost": {"dead"}, "slot": {"slot"}, "agent": {"agent"}},
		tokens: map[string]string{"alice": secretToken}, queue: 1, timeout: time.Minute, format: format,
	}
	c := traced(t, &l)
	w := newWorld(t, l)
	var all []told
	ask1 := func(end, tag string, a ask) {
		h, trace := c.parent()
		a.tag, a.header, a.token, a.prompt = tag, h, secretToken, secretPrompt
		got := w.ask(a)
		all = append(all, told{got.header.Get("X-Request-Id"), trace, end, end == "run"})
	}
	for _, path := range []string{"", "/v1/completions", "/v1/embeddings", "/v1/responses"} {
		ask1("run", "well", ask{path: path})
	}
	for _, stream := range []bool{false, true} {
		for _, tag := range []string{"well", "500", "400", "broken", "rude", "no head"} {
			ask1("run", tag, ask{stream: stream})
			b.SetFor("well", backend.Plan{Text: answer})
			ask1("run", "well", ask{}) // failures in a row would degrade the provider
			ask1("run", tag, ask{stream: stream, path: "/v1/responses"})
			ask1("run", "well", ask{})
		}
		ask1("run", "dead", ask{stream: stream, model: "lost"})
		ask1("run", "agent", ask{stream: stream, model: "agent"})
		ask1("refused", "nobody", ask{stream: stream, model: secretPrompt})
	}
	ask1("refused", "malformed", ask{body: []byte(`{"model":"m","messages":"` + secretPrompt)})
	all = append(all, goneAndRefused(t, w, c, b)...)
	w.want(200, ask{path: "/v1/responses", token: secretToken, body: []byte(`{"model":"m","input":"` + secretPrompt + `","background":true}`)})
	wrong := w.ask(ask{token: secretToken + "-of-mallory", prompt: secretPrompt})
	wrong.wantError(t, 401, "invalid_api_key")
	w.nodes["n1"].kill()
	await(t, "n1 is gone", func() bool { return w.link("n1") == 0 })
	ask1("refused", "gone", ask{})

	for _, x := range all {
		if x.id == "" {
			t.Fatalf("a request without an id: %+v", x)
		}
		await(t, fmt.Sprintf("the edge's line about %+v", x), func() bool { return hasLine(w.edge.process, format, x.id, x.trace) })
		if x.atNode {
			await(t, fmt.Sprintf("the node's line about %+v", x), func() bool {
				return hasLine(w.nodes["n1"], format, x.id, x.trace) || hasLine(w.nodes["n2"], format, x.id, x.trace)
			})
		}
		await(t, fmt.Sprintf("the span of %+v", x), func() bool {
			for _, s := range c.edge.Spans() {
				if s.Trace == x.trace && s.Attrs["iop.request"] == x.id && s.Attrs["iop.outcome"] != "" {
					return true
				}
			}
			return false
		})
	}
	checkLines(t, w, format)
	for _, s := range c.all() {
		checkSilent(t, "a span", s.String())
	}
}

// goneAndRefused has clients leave and the queue be full.
func goneAndRefused(t *testing.T, w *world, c *tracing, b *backend.Backend) (all []told) {
	begin := func(name string) (ask, told) {
		h, trace := c.parent()
		h["X-Request-Id"] = []string{name}
		return ask{tag: "held", model: "slot", header: h, token: secretToken, prompt: secretPrompt}, told{id: name, trace: trace}
	}
	a, x := begin("leaves-running")
	first := w.start(a)
	await(t, "it runs", func() bool { return b.Stats().Held == 1 })
	x.atNode = true
	a, y := begin("leaves-waiting")
	second := w.queue(a, 1)
	a, z := begin("finds-no-place")
	third := w.ask(a)
	third.wantError(t, 429, "queue_full")
	second.leave()
	w.awaitPending(0)
	first.leave()
	w.awaitIdle()
	return append(all, x, y, z)
}

// hasLine looks for a line about a request, with its trace.
func hasLine(p *process, format, id, trace string) bool {
	for l := range strings.SplitSeq(p.out.String(), "\n") {
		if format == "json" {
			var f map[string]any
			if json.Unmarshal([]byte(l), &f) == nil && f["request"] == id && f["trace_id"] == trace {
				return true
			}
		} else if strings.Contains(l, " request="+id+" trace_id="+trace+" ") {
			return true
		}
	}
	return false
}

// checkLines looks at every line of every process.
func checkLines(t *testing.T, w *world, format string) {
	about := 0
	for _, p := range w.all {
		for l := range strings.SplitSeq(p.out.String(), "\n") {
			checkSilent(t, p.name, l)
			var f map[string]any
			if format != "json" || json.Unmarshal([]byte(l), &f) != nil {
				continue
			}
			_, lease := f["lease"]
			_, run := f["run"]
			isAbout := lease || run
			for _, m := range aboutRuns {
				isAbout = isAbout || f["msg"] == m
			}
			if !isAbout {
				continue
			}
			about++
			if id, _ := f["request"].(string); id == "" {
				t.Errorf("%s: a line about a run without its request: %s", p.name, l)
			}
		}
	}
	if format == "json" && about < 50 {
		t.Errorf("only %d lines are about requests", about)
	}
}

func checkSilent(t *testing.T, what, text string) {
	for _, s := range []string{secretPrompt, secretAnswer, secretToken, nodeToken("n1"), nodeToken("n2"), http.CanonicalHeaderKey("authorization") + ":"} {
		if strings.Contains(text, s) {
			t.Errorf("%s shows %s: %s", what, s, text)
		}
	}
}
