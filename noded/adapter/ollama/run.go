package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// run is one request of a client. It takes as many calls as it has choices, one after another: it holds one slot.
type run struct {
	ollama *Adapter
	call   *adapter.Call
	q      *chat.Request
	answer adapter.Answer
	w      *chat.Writer
	think  any        // as it goes to Ollama; nil for nothing
	usage  chat.Usage // of all calls so far
	calls  int        // that came to their end
	ran    bool       // one has been answered with 200
}

func (r *run) do(ctx context.Context) adapter.End {
	if r.q.Endpoint == chat.Embedding {
		return r.embed(ctx)
	}
	r.think = wantedThink(r.q, r.ollama.think)
	prompts := max(len(r.q.Prompts), 1)
	for i := range prompts * r.q.N {
		r.w.At(i)
		if end, over := r.choice(ctx, i); over {
			return end
		}
	}
	r.w.Usage(r.usage)
	return r.ended(ctx, r.w.End())
}

// choice makes one choice; over: the run has ended with it.
func (r *run) choice(ctx context.Context, i int) (end adapter.End, over bool) {
	for {
		l := &lines{run: r, single: r.q.ParallelToolCalls != nil && !*r.q.ParallelToolCalls}
		path, body := r.body(i)
		end = r.send(ctx, path, body, l)
		if end.Code == adapter.CodeOK {
			l.end()
		}
		switch {
		case r.w.Err() != nil:
			return r.ended(ctx, r.w.Err()), true
		case l.failure != nil && r.thinksOtherwise(l.failure):
			continue // it was refused before it ran
		case l.failure != nil:
			return r.fail(ctx, l.failure), true
		case end.Code != adapter.CodeOK:
			return r.broke(end), true
		case !l.done:
			end.Code, end.Message = adapter.CodeBackendBroke, "ollama ended its answer before it was done"
			return end, true
		}
		return end, false
	}
}

// count adds what a call has cost. The prompt of a request with several choices counts once.
func (r *run) count(v *line) {
	if r.calls%r.q.N == 0 {
		r.usage.Prompt += v.Prompt
	}
	r.usage.Completion += v.Completion
	r.usage.Took.Load += time.Duration(v.Load)
	r.usage.Took.Prompt += time.Duration(v.PromptTook)
	r.usage.Took.Completion += time.Duration(v.CompletionTook)
	r.calls++
}

// body is the i-th call.
func (r *run) body(i int) (path string, body any) {
	g := r.generation(i % r.q.N)
	if r.q.Endpoint == chat.Chat {
		return "/api/chat", chatBody{Model: r.q.Model, Messages: messages(r.q), Tools: offered(r.q), generation: g}
	}
	var suffix string
	_ = json.Unmarshal(r.q.Extra["suffix"], &suffix) // anything else is none
	return "/api/generate", generateBody{Model: r.q.Model, Prompt: r.q.Prompts[i/r.q.N].Text, Suffix: suffix, generation: g}
}

// send makes one call to Ollama and ends when it is really over.
func (r *run) send(ctx context.Context, path string, body any, answer adapter.Answer) adapter.End {
	b, err := json.Marshal(body)
	if err != nil {
		return adapter.End{Dispatched: adapter.DispatchedNo, Code: adapter.CodeBadCall, Message: "encode the request: " + err.Error()}
	}
	end := r.ollama.tunnel.Do(ctx, &adapter.Call{
		Method: http.MethodPost, Path: path, Header: headerOf(r.call.Header), Body: b, Deadline: r.call.Deadline, Type: "ollama",
	}, answer)
	if end.Held != nil {
		end.Held = held(newFailure(end.Held.Status, end.Held.Body).problem(r.q, r.numCtx()))
	}
	return end
}

// headerOf is what goes to Ollama of a client's headers: whose it is and what traces it, nothing about the body.
func headerOf(h http.Header) http.Header {
	out := http.Header{"Content-Type": {"application/json"}}
	for name, values := range h {
		if !strings.HasPrefix(name, "Content-") && !strings.HasPrefix(name, "Accept") {
			out[name] = values
		}
	}
	return out
}

// thinksOtherwise reports whether Ollama refused only how the model is to think, and changes that: a model that knows no
// levels thinks or does not, and what only the configuration asked for can be left out.
func (r *run) thinksOtherwise(f *failure) bool {
	_, isLevel := r.think.(string)
	switch {
	case f.status != http.StatusBadRequest:
		return false
	case isLevel && f.says("think value"):
		r.think = true
		return true
	case r.q.Effort == "" && r.think != nil && f.says("does not support thinking"):
		r.think = nil
		return true
	}
	return false
}

// fail ends the run with what Ollama said is wrong.
func (r *run) fail(ctx context.Context, f *failure) adapter.End {
	p := f.problem(r.q, r.numCtx())
	if f.notRun() && !r.ran {
		return adapter.End{Dispatched: adapter.DispatchedNo, Code: adapter.CodeBusy, Message: "ollama did not run the request: " + f.text, Held: held(p)}
	}
	broke, err := r.w.Fail(p)
	if broke && err == nil {
		return adapter.End{Dispatched: adapter.DispatchedYes, Code: adapter.CodeBackendBroke, Message: "ollama broke off: " + f.unquoted()}
	}
	return r.ended(ctx, err)
}

// broke ends a run of which a call did not come to its end. If an earlier one did, the request has been run.
func (r *run) broke(end adapter.End) adapter.End {
	if !r.ran {
		return end
	}
	end.Dispatched, end.Held = adapter.DispatchedYes, nil
	if end.Code == adapter.CodeBusy || end.Code == adapter.CodeConnectFailed {
		end.Code = adapter.CodeBackendBroke
	}
	return end
}

// ended ends a run whose answer is complete, or can't be passed on.
func (r *run) ended(ctx context.Context, err error) adapter.End {
	end := adapter.End{Dispatched: adapter.DispatchedYes}
	switch {
	case err == nil:
		return end
	case errors.Is(ctx.Err(), context.Canceled):
		end.Code = adapter.CodeCanceled
	case ctx.Err() != nil:
		end.Code = adapter.CodeBackendTimeout
	case r.w.Err() != nil:
		end.Code = adapter.CodeAnswerFailed
	default:
		end.Code = adapter.CodeBackendBroke
	}
	end.Message = fmt.Sprintf("pass the answer on: %v", err)
	return end
}
