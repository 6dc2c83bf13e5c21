// Package ollama is the adapter for Ollama's own API: chat, completions and embeddings go to /api/chat, /api/generate and
// /api/embed, and come back in OpenAI's shapes (package chat); everything else is tunnelled to Ollama's /v1.
//
// The own API is used because /v1 takes neither num_ctx nor keep_alive and cuts a prompt that is too long without a word.
// noded calls it as any adapter; connections, deadlines and the strict word on what was dispatched are those of
// adapter.OpenAI, which carries the requests. Start reading at run.go; request.go is the way there, lines.go the way back.
package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// Config describes an Ollama server and how its models are run.
type Config struct {
	BaseURL string // http://host:11434; a /v1 at its end is taken off
	APIKey  string // bearer token of a proxy in front; "" for none

	NumCtx    int64  // context of a loaded model, in tokens; 0 is the window of the call's provider, and without one Ollama's own
	KeepAlive string // how long a model stays loaded: 10m, 0, -1; "" is Ollama's own
	Think     Think  // where a request says nothing
}

// Think is whether, and how much, a model thinks: on, off, or a level, which only some models know: low, medium or high.
// "" is as the model does by itself.
type Think string

// Adapter reaches one Ollama server. It is an adapter.Adapter.
type Adapter struct {
	tunnel    *adapter.OpenAI
	numCtx    int64
	keepAlive any // a JSON number or string; nil for none
	think     any // a boolean or a level; nil for none
}

// New returns the adapter. It connects to nothing before the first call; the error is about the configuration.
func New(c Config) (*Adapter, error) {
	t, err := adapter.NewOpenAI(adapter.OpenAIConfig{BaseURL: strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/v1"), APIKey: c.APIKey})
	if err != nil {
		return nil, err
	}
	a := &Adapter{tunnel: t, numCtx: c.NumCtx}
	if c.KeepAlive != "" {
		a.keepAlive = c.KeepAlive
		if json.Valid([]byte(c.KeepAlive)) {
			a.keepAlive = json.RawMessage(c.KeepAlive) // a number is of seconds
		}
	}
	switch c.Think {
	case "":
	case "on", "off":
		a.think = c.Think == "on"
	case "low", "medium", "high":
		a.think = string(c.Think)
	default:
		return nil, fmt.Errorf("think is %q; it must be on, off, low, medium or high", c.Think)
	}
	return a, nil
}

// Do runs one call: see adapter.Adapter.
func (a *Adapter) Do(ctx context.Context, c *adapter.Call, answer adapter.Answer) adapter.End {
	path, _, _ := strings.Cut(c.Path, "?")
	if c.Method != http.MethodPost {
		return a.tunnel.Do(ctx, c, answer)
	}
	switch path {
	case "/v1/chat/completions", "/v1/completions", "/v1/embeddings":
	default:
		return a.tunnel.Do(ctx, c, answer)
	}
	q, problem := chat.Read(c.Path, c.Body)
	if problem == nil {
		problem = unsupported(q)
	}
	if problem == nil {
		problem = a.blind(ctx, c, q)
	}
	if problem != nil {
		return refuse(problem, answer)
	}
	r := &run{ollama: a, call: c, q: q, answer: answer, w: chat.NewWriter(q, answer, chat.Options{Fingerprint: "ollama"})}
	return r.do(ctx)
}

// refuse answers with a problem of the request. Ollama has not been asked.
func refuse(p *chat.Problem, answer adapter.Answer) adapter.End {
	if err := p.Answer(answer); err != nil {
		return adapter.End{Dispatched: adapter.DispatchedNo, Code: adapter.CodeAnswerFailed, Message: "pass the answer on: " + err.Error()}
	}
	return adapter.End{Dispatched: adapter.DispatchedYes}
}

// Close closes the idle connections: see adapter.Adapter.
func (a *Adapter) Close() { a.tunnel.Close() }
