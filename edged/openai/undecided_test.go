package openai_test

import (
	"context"
	"testing"

	"iop/edged/openai"
)

// TestLeavesBetweenTwoProviders: the backend did not run the request, and it is cut off before it could go to another
// one. Nothing was decided then; the answer must not be one with status 0, which net/http does not survive.
func TestLeavesBetweenTwoProviders(t *testing.T) {
	e := newEdge(t)
	e.backend = func(context.Context, *openai.Exchange, openai.Answer) openai.End {
		return openai.End{Dispatched: openai.DispatchedNo, Code: "connect_failed"}
	}
	e.run = func(ctx context.Context, q openai.Request, c openai.Caller) error {
		e.dispatch(ctx, q, c)
		return nil // as admission does when ctx has ended
	}
	wantCode(t, e.chat(hello), 503, "stopping")
}
