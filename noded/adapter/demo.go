package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DemoConfig sets what the built-in backend serves and at which pace.
type DemoConfig struct {
	Models       []string      // served names; none: any name is served
	Words        int           // of an answer
	FirstToken   time.Duration // before an answer begins; 0 is at once
	WordInterval time.Duration // between words; 0 is all at once
}

// Demo is a backend that is built in, to try the gateway without a model. It speaks the OpenAI API correctly and is
// honest about what it is: its text says so, and of a prompt it gives back the size, never the words. One word is one
// token to it.
type Demo struct {
	models       []string
	words        int
	firstToken   time.Duration
	wordInterval time.Duration
}

// NewDemo returns the built-in backend.
func NewDemo(c DemoConfig) *Demo {
	return &Demo{
		models:       c.Models,
		words:        max(c.Words, 0),
		firstToken:   c.FirstToken,
		wordInterval: c.WordInterval,
	}
}

// Do runs one call: see Adapter.
func (d *Demo) Do(ctx context.Context, c *Call, a Answer) End {
	if !c.Deadline.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, c.Deadline)
		defer cancel()
		ctx = bounded
	}
	begun := &begunAnswer{a: a}
	err := d.serve(ctx, c, begun)
	end := End{Dispatched: DispatchedYes}
	var wrong *demoError
	switch {
	case errors.As(err, &wrong):
		err = answerJSON(begun, wrong.status, map[string]*demoError{"error": wrong})
	case err != nil && !begun.yes:
		end.Dispatched = DispatchedUnknown
	}
	if err != nil {
		end.Code, end.Message = demoFailed(ctx), err.Error()
	}
	return end
}

// demoFailed tells the code of a run that did not come to its end.
func demoFailed(ctx context.Context) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return CodeBackendTimeout
	case ctx.Err() != nil:
		return CodeCanceled
	default:
		return CodeAnswerFailed
	}
}

// serve picks what answers a path.
func (d *Demo) serve(ctx context.Context, c *Call, a Answer) error {
	path, _, _ := strings.Cut(c.Path, "?")
	switch c.Method + " " + path {
	case "POST /v1/chat/completions":
		return d.complete(ctx, c, a, chatShape{})
	case "POST /v1/completions":
		return d.complete(ctx, c, a, textShape{})
	case "POST /v1/embeddings":
		return d.embed(ctx, c, a)
	case "GET /v1/models":
		return answerJSON(a, http.StatusOK, d.list())
	case "GET /health":
		return answerJSON(a, http.StatusOK, map[string]string{"status": "ok"})
	}
	return &demoError{
		status:  http.StatusNotFound,
		Message: fmt.Sprintf("iop's demo provider has no %s %s; it serves chat completions, completions, embeddings and models", c.Method, path),
		Type:    "invalid_request_error",
		Code:    "not_found",
	}
}

// Probe is answered by the same paths as any GET; without a path it is well.
func (d *Demo) Probe(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	var got statusOnly
	d.Do(ctx, &Call{Method: http.MethodGet, Path: path}, &got)
	if got.status != http.StatusOK {
		return fmt.Errorf("GET %s: status %d", path, got.status)
	}
	return nil
}

// Close does nothing: there is nothing kept.
func (d *Demo) Close() {}

// demoModel is an entry of the model list.
type demoModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type demoModels struct {
	Object string      `json:"object"`
	Data   []demoModel `json:"data"`
}

func (d *Demo) list() demoModels {
	l := demoModels{Object: "list", Data: []demoModel{}}
	for _, id := range d.models {
		l.Data = append(l.Data, demoModel{ID: id, Object: "model", OwnedBy: "iop-demo"})
	}
	return l
}

// demoError is an answer in OpenAI's error shape.
type demoError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

func (e *demoError) Error() string { return e.Message }

// refuse is a 400 about one parameter.
func refuse(param, code, format string, args ...any) *demoError {
	return &demoError{
		status:  http.StatusBadRequest,
		Message: fmt.Sprintf(format, args...),
		Type:    "invalid_request_error",
		Param:   &param,
		Code:    code,
	}
}

// answerJSON answers v whole.
func answerJSON(a Answer, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	h := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	if err := a.Head(status, h); err != nil {
		return err
	}
	return a.Data(body)
}

// begunAnswer remembers whether an answer has begun.
type begunAnswer struct {
	a   Answer
	yes bool
}

func (b *begunAnswer) Head(status int, h http.Header) error { b.yes = true; return b.a.Head(status, h) }
func (b *begunAnswer) Data(p []byte) error                  { return b.a.Data(p) }
