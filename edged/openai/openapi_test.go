package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"iop/edged/openai"
	"iop/fsm"
)

// document is what the OpenAPI document says, as far as it is held against the handlers.
type document struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Responses map[string]documented }
	compiler   *jsonschema.Compiler
}

// documented is an answer as the document has it.
type documented struct {
	Ref     string `json:"$ref"`
	Headers map[string]any
	Content map[string]any
}

const documentURL = "http://iop/openapi.json"

func readDocument(t *testing.T, e *edge) *document {
	t.Helper()
	r := e.do("GET", "/openapi.json", "")
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	d := &document{compiler: jsonschema.NewCompiler()}
	if err := json.Unmarshal([]byte(r.body), d); err != nil {
		t.Fatal(err)
	}
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.compiler.AddResource(documentURL, whole); err != nil {
		t.Fatal(err)
	}
	return d
}

// at compiles the schema at a place of the document.
func (d *document) at(t *testing.T, pointer ...string) *jsonschema.Schema {
	t.Helper()
	for i, p := range pointer {
		pointer[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "*", "%2A").Replace(p)
	}
	s, err := d.compiler.Compile(documentURL + "#/" + strings.Join(pointer, "/"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// holds holds a real answer against what the document says of it: the status, the headers, the body.
func (d *document) holds(t *testing.T, path, method string, r *reply) {
	t.Helper()
	var o struct{ Responses map[string]documented }
	if err := json.Unmarshal(d.Paths[path][method], &o); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	status := fmt.Sprint(r.StatusCode)
	place := []string{"paths", path, method, "responses", status}
	said, ok := o.Responses[status]
	if name, shared := strings.CutPrefix(said.Ref, "#/components/responses/"); shared {
		place = []string{"components", "responses", name}
		said = d.Components.Responses[name]
	}
	if !ok {
		t.Errorf("%s %s answers %s, which is not in the document: %s", method, path, status, r.body)
		return
	}
	for name := range said.Headers {
		if v := r.Header.Get(name); v != "" {
			if err := d.at(t, "components", "headers", name, "schema").Validate(v); err != nil {
				t.Errorf("%s %s %s: header %s: %v", method, path, status, name, err)
			}
		}
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-iop-") || strings.HasPrefix(name, "retry-after") || name == "x-should-retry" || name == "x-request-id" {
			if _, known := said.Headers[name]; !known && name != "x-iop-dispatched" && name != "x-iop-estimated-tokens" && name != "x-iop-class" {
				t.Errorf("%s %s %s has the header %s, which is not in the document", method, path, status, name)
			}
		}
	}
	if r.Header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s %s has no x-request-id", method, path, status)
	}
	if _, any := said.Content["*/*"]; any || r.Header.Get("Content-Type") != "application/json" {
		return
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
	if err != nil {
		t.Errorf("%s %s %s: %v", method, path, status, err)
		return
	}
	if err := d.at(t, append(place, "content", "application/json", "schema")...).Validate(v); err != nil {
		t.Errorf("%s %s %s: %v: %s", method, path, status, err, r.body)
	}
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// real is a path of the document with something in its placeholders.
func real(path string) string { return placeholder.ReplaceAllString(path, "x") }

// wholeAnswer is what every route may answer.
const wholeAnswer = `{"id":"1","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"data":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`

const routeAll = fsm.NeedChat | fsm.NeedRerank | fsm.NeedScore | fsm.NeedAudio | fsm.NeedImages | fsm.NeedTokenize | fsm.NeedModerations | fsm.NeedOther

// Every route and method of the document is served, and what is not in it is not.
func TestOpenAPIRoutes(t *testing.T) {
	e := newEdge(t, can(routeAll))
	e.backend = answerJSON(200, wholeAnswer)
	d := readDocument(t, e)
	methods := []string{"get", "post", "put", "patch", "delete"}
	for path, item := range d.Paths {
		for _, method := range methods {
			r := e.do(strings.ToUpper(method), real(path), `{"model":"ornith:35b","max_tokens":1,"messages":[{"role":"user","content":"x"}],"input":"x"}`)
			code := r.code()
			served := r.StatusCode != 405 && code != "unknown_url"
			if _, said := item[method]; said != served {
				t.Errorf("%s %s: in the document %v, and it answers %d %s", method, path, said, r.StatusCode, code)
			} else if said {
				d.holds(t, path, method, r)
			}
			if r.StatusCode == 405 && !slices.ContainsFunc(strings.Split(r.Header.Get("Allow"), ", "), func(m string) bool { return item[strings.ToLower(m)] != nil }) {
				t.Errorf("%s %s allows %q", method, path, r.Header.Get("Allow"))
			}
		}
	}
	// The other way round: the paths that the handlers know.
	for _, path := range []string{
		"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/responses/{response_id}", "/v1/responses/{response_id}/cancel",
		"/v1/responses/{response_id}/input_items", "/v1/messages", "/v1/messages/count_tokens", "/v1/models", "/v1/models/{model}", "/healthz", "/readyz", "/openapi.json",
	} {
		if d.Paths[path] == nil {
			t.Errorf("%s is not in the document", path)
		}
	}
}

// Answers, good ones and errors, are as the document says.
func TestOpenAPIAnswers(t *testing.T) {
	e := newEdge(t, can(routeAll), func(o *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("secret"), Principal: "team"}}
		o.MaxBodyBytes = 4096
	})
	d := readDocument(t, e)
	key := []string{"Authorization", "Bearer secret"}
	ask := `{"model":"ornith:35b","max_tokens":5,"input":"x","messages":[{"role":"user","content":"x"}]}`
	for path, item := range d.Paths {
		if item["post"] == nil || strings.Contains(path, "{response_id}") {
			continue
		}
		e.backend, e.run = answerJSON(200, wholeAnswer), nil
		answers := []*reply{
			e.do("POST", real(path), ask, key...), e.do("POST", real(path), ask), e.do("POST", real(path), `{`, key...),
			e.do("POST", real(path), `{"model":"nope","max_tokens":1,"messages":[{}],"input":""}`, key...),
			e.do("POST", real(path), strings.Repeat(" ", 5000), key...), e.do("POST", real(path), ask, append(key, "Content-Encoding", "gzip")...),
		}
		if answers[0].StatusCode != 200 {
			t.Errorf("%s: %d %s", path, answers[0].StatusCode, answers[0].body)
		}
		for code := range map[string]bool{"queue_full": true, "queue_timeout": true, "unavailable": true, "no_leader": true, "context_too_long": true, "unsupported": true, "in_progress_elsewhere": true, "stopping": true} {
			e.run = func(context.Context, openai.Request, openai.Caller) error { return coded(code) }
			answers = append(answers, e.do("POST", real(path), ask, key...))
		}
		e.run = nil
		for _, end := range []string{"backend_broke", "backend_timeout"} {
			e.backend = func(context.Context, *openai.Exchange, openai.Answer) openai.End {
				return openai.End{Dispatched: openai.DispatchedYes, Code: end}
			}
			answers = append(answers, e.do("POST", real(path), ask, key...))
		}
		for _, r := range answers {
			d.holds(t, path, "post", r)
		}
	}
	for path, code := range map[string]int{"/v1/models": 200, "/v1/models/{model}": 404} {
		r := e.do("GET", real(path), "", key...)
		if r.StatusCode != code {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
		d.holds(t, path, "get", r)
		d.holds(t, path, "get", e.do("GET", real(path), ""))
	}
}

// The document keeps to the rules of its own format that a reader relies on: every reference leads somewhere, and every
// placeholder of a path is a parameter.
func TestOpenAPIDocumentIsWhole(t *testing.T) {
	e := newEdge(t)
	r := e.do("GET", "/openapi.json", "")
	var whole any
	if err := json.Unmarshal([]byte(r.body), &whole); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && !leads(whole, ref) {
				t.Errorf("%s leads nowhere", ref)
			}
			for _, w := range v {
				walk(w)
			}
		case []any:
			for _, w := range v {
				walk(w)
			}
		}
	}
	walk(whole)
	if e.do(http.MethodHead, "/openapi.json", "").StatusCode != 200 {
		t.Error("HEAD is not answered")
	}
}

func leads(whole any, ref string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := whole.(map[string]any)
		if whole = m[part]; whole == nil {
			return false
		}
	}
	return true
}
