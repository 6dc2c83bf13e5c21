package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/e2e/backend/talk"
)

var update = flag.Bool("update", false, "write docs/PROVIDERS.md anew from what is observed")

// What a cell says of an answer, beside an error's status and code.
const (
	asAsked = "as asked"
	leftOut = "left out"
)

// conform is one request that is put to every kind of provider.
type conform struct {
	name   string
	path   string // "" = /v1/chat/completions
	model  string // "" = the kind's
	body   string // the members after model
	stream bool
	usage  bool // a stream whose usage is asked for
	// check tells what is missing in an answer of the right shape; "" if it is as asked. Nil: any text will do.
	check func(s *spoken) string
	usual string            // the cell; "" = asAsked
	but   map[string]string // by kind: another cell
	// native is what Ollama's own request must have: options.seed=7.
	native []string
	// real: it also makes sense against a real server, whose model does not follow scripts.
	real bool
	// run makes the request, for one that is no question with an answer.
	run func(t *testing.T, k *kind, c *conform) string
}

// kind is a kind of provider in the world of the table, and its server.
type kind struct {
	w      *world
	name   string       // of its column, its provider and its model
	server *talk.Server // nil: there is none to ask
	tunnel bool         // bytes go through as they are
	real   bool         // it is somebody's server: what it does is noted, whatever it is
}

func (c *conform) at() string { return or(c.path, "/v1/chat/completions") }

func (c *conform) request(k *kind) ask {
	body := `{"model":` + quotedJSON(or(c.model, k.name)) + `,` + c.body
	if c.stream {
		body += `,"stream":true`
	}
	if c.usage {
		body += `,"stream_options":{"include_usage":true}`
	}
	if k.real && !strings.Contains(body, `"max_`) && !strings.HasSuffix(c.path, "/embeddings") {
		body += `,"max_tokens":20` // it counts to 300 by itself
	}
	return ask{path: c.path, tag: k.name + "/" + c.name, stream: c.stream, body: []byte(body + "}")}
}

func quotedJSON(s string) string { return string(render(s)) }

// expected is the cell that a kind must have.
func (c *conform) expected(kind string) string {
	if cell, ok := c.but[kind]; ok {
		return cell
	}
	return or(c.usual, asAsked)
}

// TestConformance puts the same requests to every kind of provider. What a client gets is what it asked for, or what the
// table says; docs/PROVIDERS.md is the table as it was observed (go test ./e2e -run TestConformance -update).
func TestConformance(t *testing.T) {
	t.Parallel()
	kinds := newKinds(t)
	seen := observed{}
	for _, k := range kinds {
		for _, c := range conforms() {
			cell := k.observe(t, &c)
			seen.note(c.name, k.name, cell)
			if want := c.expected(k.name); cell != want {
				t.Errorf("%s, %s: a client gets %q, want %q", k.name, c.name, cell, want)
			}
		}
	}
	kinds[0].w.awaitIdle()
	seen.document(t)
}

// newKinds starts a world with a provider of each kind.
func newKinds(t *testing.T) []*kind {
	t.Helper()
	me := self(t)
	kinds := []*kind{
		{name: "openai_compat", server: talk.New(talk.OpenAI), tunnel: true},
		{name: "vllm", server: talk.New(talk.VLLM), tunnel: true},
		{name: "llamacpp", server: talk.New(talk.Llama), tunnel: true},
		{name: "ollama", server: talk.New(talk.Ollama)},
		{name: "cli"},
		{name: "demo"},
	}
	l := layout{models: map[string][]string{}}
	for _, k := range kinds {
		p := provider{id: k.name, kind: k.name, capacity: 4}
		switch k.name {
		case "cli":
			p.kind, p.command, p.cli = "", []string{me, talkCommand}, talk.AgentFields()
			p.cli["scratch"] = filepath.Join(t.TempDir(), "runs")
		case "demo":
			p.demo, p.window = map[string]any{"words": 8, "word_interval_ms": 0, "first_token_ms": 0}, 30_000
		default:
			s := httptest.NewServer(k.server)
			t.Cleanup(s.Close)
			p.url = s.URL
			if k.tunnel {
				p.url += "/v1"
			}
		}
		l.providers = append(l.providers, p)
		l.models[k.name] = []string{k.name}
	}
	l.threshold = 1_000_000
	w := newWorld(t, l.unmetered()) // a tunnel then changes nothing but the model
	for _, k := range kinds {
		k.w = w
	}
	return kinds
}

// observe makes a request and says in a cell what came of it.
func (k *kind) observe(t *testing.T, c *conform) string {
	t.Helper()
	if c.run != nil {
		return c.run(t, k, c)
	}
	q := c.request(k)
	a := k.w.ask(q)
	k.checkHeard(t, c, &q)
	if a.status != http.StatusOK || !a.clean {
		k.recover(a.status)
		return k.failureCell(t, c, &a)
	}
	s := hear(a, c.at(), or(c.model, k.name), c.stream, c.usage || !c.stream)
	switch {
	case len(s.faults) > 0 && k.real:
		return strings.Join(s.faults, "; ")
	case len(s.faults) > 0:
		t.Errorf("%s, %s: not OpenAI's shape: %s\n%.1500s", k.name, c.name, strings.Join(s.faults, "; "), a.body)
	}
	lacks := ""
	switch {
	case c.check != nil:
		lacks = c.check(s)
	case s.first().text == "":
		lacks = "no text"
	}
	if lacks == "" {
		return asAsked
	}
	t.Logf("%s, %s: %s", k.name, c.name, lacks)
	return leftOut
}

// recover lets a run go well after one that failed: five failures at once with no success between degrade a provider.
func (k *kind) recover(status int) {
	if status < 500 && status != http.StatusOK {
		return
	}
	k.w.want(http.StatusOK, ask{model: k.name})
	if k.server != nil {
		k.server.Take()
	}
}

// checkHeard checks what the server was asked: a tunnel changes the model alone.
func (k *kind) checkHeard(t *testing.T, c *conform, q *ask) {
	t.Helper()
	if k.server == nil {
		return
	}
	heard := k.server.Take()
	if len(heard) == 0 {
		return // it was refused before
	}
	if k.tunnel {
		want := strings.Replace(string(q.body), quotedJSON(k.name), quotedJSON(served(k.name)), 1)
		if got := string(heard[0].Body); len(heard) > 1 || got != want {
			t.Errorf("%s, %s: the server was asked %d times\n%.600s, want\n%.600s", k.name, c.name, len(heard), got, want)
		}
		return
	}
	for _, h := range heard {
		if h.Path == "/api/show" {
			continue // whether the model sees images
		}
		var body any
		if err := json.Unmarshal(h.Body, &body); err != nil {
			t.Errorf("%s, %s: %v in %.300s", k.name, c.name, err, h.Body)
		}
		for _, fact := range c.native {
			path, want, _ := strings.Cut(fact, "=")
			if got := memberAt(body, path); got != want {
				t.Errorf("%s, %s: Ollama was asked with %s = %s, want %s: %.600s", k.name, c.name, path, got, want, h.Body)
			}
		}
	}
}

// memberAt is the JSON at a path of members and indexes; "" if there is none.
func memberAt(v any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			below, ok := in[name]
			if !ok {
				return ""
			}
			v = below
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(in) {
				return ""
			}
			v = in[i]
		default:
			return ""
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// failureCell says in a cell what an error looks like. What is no server's own words must have OpenAI's shape, and a
// refusal must say what to do or what it is about.
func (k *kind) failureCell(t *testing.T, c *conform, a *answer) string {
	t.Helper()
	body := a.body
	if a.status == http.StatusOK {
		all := frames(body)
		if len(all) == 0 {
			return "broken off"
		}
		if errors := strings.Count(string(a.body), `data: {"error":`); errors != 1 {
			t.Errorf("%s, %s: %d errors are told in the stream:\n%s", k.name, c.name, errors, a.body)
		}
		body = all[len(all)-1]
	}
	var e struct {
		Error *struct {
			Message, Type string
			Param         *string
			Code          any
		}
		Object, Type string
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Error == nil && e.Object != "error" {
		t.Errorf("%s, %s: no error: status %d, clean %v: %.300s", k.name, c.name, a.status, a.clean, a.body)
		return "no error"
	}
	cell := fmt.Sprint(a.status)
	if a.status == http.StatusOK {
		cell = "error event"
	}
	if e.Error == nil {
		return cell + " `" + e.Type + "`, flat"
	}
	if e.Error.Code != nil {
		cell += fmt.Sprintf(" `%v`", e.Error.Code)
	}
	if e.Error.Param != nil {
		cell += " on `" + *e.Error.Param + "`"
	}
	code, _ := e.Error.Code.(string)
	if !k.tunnel && (e.Error.Message == "" || e.Error.Type == "" || code == "") {
		t.Errorf("%s, %s: not OpenAI's shape of an error: %s", k.name, c.name, body)
	}
	if !k.tunnel && a.status >= 400 && a.status < 500 && e.Error.Param == nil && !strings.ContainsAny(e.Error.Message, ";.") {
		t.Errorf("%s, %s: the refusal has neither a cure nor a parameter: %s", k.name, c.name, body)
	}
	return cell
}

// talkCommand makes the test binary play talk.Agent, or with a directory talk.StallingAgent.
const talkCommand = "talk"

func playTalk(in io.Reader, out io.Writer) int {
	if len(os.Args) > 2 {
		return talk.StallingAgent(in, out, os.Args[2], len(os.Args) > 3)
	}
	return talk.Agent(in, out)
}

// TestConformanceTable: the table is about what it says, and no kind is left out.
func TestConformanceTable(t *testing.T) {
	names := map[string]bool{}
	for _, c := range conforms() {
		if names[c.name] {
			t.Errorf("%s is there twice", c.name)
		}
		names[c.name] = true
		if c.check != nil && c.check(&spoken{}) == "" && !strings.Contains(c.name, "nothing") {
			t.Errorf("%s: an answer without anything is as asked", c.name)
		}
	}
	if len(names) < 30 {
		t.Errorf("%d cases", len(names))
	}
}

// abandoned makes a request that a client leaves in the middle of its stream.
func abandoned(t *testing.T, k *kind, c *conform) string {
	t.Helper()
	q := c.request(k)
	q.stream = true
	s := k.w.open(q)
	s.next()
	s.leave()
	k.w.awaitIdle()
	if k.server != nil {
		await(t, k.name+" sees that the client has left", func() bool { return k.server.Left() == 1 })
		k.server.Take()
	}
	return asAsked
}
