package openai_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"iop/edged/openai"
)

// TestAgentHearsCommentsAlone: clients of the messages API count events, not comments, against their idle limits.
func TestAgentHearsCommentsAlone(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.QueueKeepalive = time.Hour })
	e.waitThen(2, func(ctx context.Context, q openai.Request, c openai.Caller) error { e.dispatch(ctx, q, c); return nil })
	e.backend = answerAs("text/event-stream", 200, "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n", "data: [DONE]\n\n")
	r := e.message(`{"model":"ornith:35b","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	ping := "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	if !strings.HasPrefix(r.body, ping+ping+"event: message_start\n") || !strings.HasSuffix(r.body, "\"type\":\"message_stop\"}\n\n") || r.err != nil {
		t.Errorf("%v %q", r.err, r.body)
	}
}
