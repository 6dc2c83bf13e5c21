package openai_test

import (
	"context"
	"testing"
	"time"

	"iop/edged/openai"
)

// TestQueuedAgainIsNoSignOfLife: a request that comes into the queue a second time, because a provider did not run it or
// because its edge lost its session meanwhile, gets no head of an event stream if it asked for none, or if signs of life
// are off. It would lose its status, and a plain answer its end.
func TestQueuedAgainIsNoSignOfLife(t *testing.T) {
	granted := func(e *edge) func(ctx context.Context, q openai.Request, c openai.Caller) error {
		return func(ctx context.Context, q openai.Request, c openai.Caller) error { e.dispatch(ctx, q, c); return nil }
	}
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.QueueKeepalive = time.Hour })
	e.waitThen(1, granted(e))
	e.backend = answerJSON(200, `{"model":"served/ornith:35b"}`)
	if r := e.chat(hello); r.StatusCode != 200 || r.err != nil || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("a plain request: %d %q %v %v", r.StatusCode, r.body, r.Header, r.err)
	}
	e = newEdge(t)
	e.waitThen(1, granted(e))
	e.backend = answerJSON(400, `{"error":{"message":"no"}}`)
	if r := e.chat(streamed); r.StatusCode != 400 || r.err != nil {
		t.Errorf("a stream without signs of life: %d %q %v", r.StatusCode, r.body, r.err)
	}
}
