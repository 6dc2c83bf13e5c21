// Package demo is a backend that is built in, to try the gateway without a model and to test it. It speaks the OpenAI API
// through package chat and is honest about what it is: its text says so, and of a prompt it gives back the size, never the
// words. One word is one token to it, and the same request has the same answer.
//
// The last message of a user can ask for more than text: "tool:NAME" calls the tool of that name, "demo:refuse" refuses,
// "demo:empty" says nothing, "demo:error" fails halfway, "demo:slow" takes its time. noded calls it as any adapter. Start reading at complete.go.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// Config sets what the built-in backend serves and at which pace.
type Config struct {
	Models       []string      // served names; none: any name is served
	Words        int           // of an answer
	FirstToken   time.Duration // before an answer begins; 0 is at once
	WordInterval time.Duration // between words; 0 is all at once
}

// Demo is the built-in backend. It is an adapter.Adapter.
type Demo struct {
	models       []string
	words        int
	firstToken   time.Duration
	wordInterval time.Duration
}

// New returns the built-in backend.
func New(c Config) *Demo {
	return &Demo{models: c.Models, words: max(c.Words, 0), firstToken: c.FirstToken, wordInterval: c.WordInterval}
}

// errBroke: the backend failed within a stream, as it was asked to.
var errBroke = errors.New("the demo provider failed, as it was asked to")

// Do runs one call: see adapter.Adapter.
func (d *Demo) Do(ctx context.Context, c *adapter.Call, a adapter.Answer) adapter.End {
	if !c.Deadline.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, c.Deadline)
		defer cancel()
		ctx = bounded
	}
	begun := &begunAnswer{Answer: a}
	err := d.serve(ctx, c, begun)
	end := adapter.End{Dispatched: adapter.DispatchedYes}
	var wrong *chat.Problem
	if errors.Is(err, chat.ErrTooLarge) {
		err = &chat.Problem{Message: "the demo provider was asked for too much", Cure: "ask for fewer choices, or stream"}
	}
	switch {
	case errors.As(err, &wrong):
		err = wrong.Answer(begun)
	case err != nil && !begun.yes:
		end.Dispatched = adapter.DispatchedUnknown
	}
	if err != nil {
		end.Code, end.Message = failed(ctx, err), err.Error()
	}
	return end
}

// failed tells the code of a run that did not come to its end.
func failed(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, errBroke):
		return adapter.CodeBackendBroke
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return adapter.CodeBackendTimeout
	case ctx.Err() != nil:
		return adapter.CodeCanceled
	default:
		return adapter.CodeAnswerFailed
	}
}

// serve picks what answers a path.
func (d *Demo) serve(ctx context.Context, c *adapter.Call, a adapter.Answer) error {
	path, _, _ := strings.Cut(c.Path, "?")
	switch c.Method + " " + path {
	case "POST /v1/chat/completions", "POST /v1/completions", "POST /v1/embeddings":
		q, problem := d.read(c)
		if problem != nil {
			return problem
		}
		w := chat.NewWriter(q, a, chat.Options{Fingerprint: "iop-demo"})
		if q.Endpoint == chat.Embedding {
			return d.embed(ctx, q, w)
		}
		return d.complete(ctx, q, w, c.Window)
	case "GET /v1/models":
		return answerJSON(a, d.list())
	case "GET /health":
		return answerJSON(a, map[string]string{"status": "ok"})
	}
	return &chat.Problem{
		Status: http.StatusNotFound, Code: "not_found",
		Message: fmt.Sprintf("iop's demo provider has no %s %s", c.Method, path),
		Cure:    "it serves chat completions, completions, embeddings and models",
	}
}

// read reads a request and refuses what the demo can't do.
func (d *Demo) read(c *adapter.Call) (*chat.Request, *chat.Problem) {
	q, problem := chat.Read(c.Path, c.Body)
	if problem != nil {
		return nil, problem
	}
	switch {
	case len(d.models) > 0 && !slices.Contains(d.models, q.Model):
		return nil, &chat.Problem{Status: http.StatusNotFound, Code: "model_not_found", Message: "the demo provider does not serve the model " + q.Model}
	case q.BestOf > q.N:
		return nil, unsupported("best_of", "the demo provider can't choose the best of several answers")
	case q.Echo:
		return nil, unsupported("echo", "the demo provider never gives back a prompt")
	}
	return q, nil
}

func unsupported(param, message string) *chat.Problem {
	return &chat.Problem{Status: http.StatusBadRequest, Code: "unsupported_value", Param: param, Message: message, Cure: "leave " + param + " out"}
}

// Probe is answered by the same paths as any GET; without a path it is well.
func (d *Demo) Probe(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	var got statusOnly
	d.Do(ctx, &adapter.Call{Method: http.MethodGet, Path: path}, &got)
	if got.status != http.StatusOK {
		return fmt.Errorf("GET %s: status %d", path, got.status)
	}
	return nil
}

// Close does nothing: there is nothing kept.
func (d *Demo) Close() {}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type models struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

func (d *Demo) list() models {
	l := models{Object: "list", Data: []model{}}
	for _, id := range d.models {
		l.Data = append(l.Data, model{ID: id, Object: "model", OwnedBy: "iop-demo"})
	}
	return l
}

// answerJSON answers v whole.
func answerJSON(a adapter.Answer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if err := a.Head(http.StatusOK, http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}); err != nil {
		return err
	}
	return a.Data(body)
}

// begunAnswer remembers whether an answer has begun.
type begunAnswer struct {
	adapter.Answer
	yes bool
}

func (b *begunAnswer) Head(status int, h http.Header) error {
	b.yes = true
	return b.Answer.Head(status, h)
}

// statusOnly is the Answer of a probe.
type statusOnly struct{ status int }

func (s *statusOnly) Head(status int, _ http.Header) error { s.status = status; return nil }
func (s *statusOnly) Data([]byte) error                    { return nil }
