package demo

import (
	"context"
	"net/http"
	"time"

	"iop/noded/adapter/chat"
)

// complete answers a completion, chat or older, streamed or not. All choices say the same, word by word.
func (d *Demo) complete(ctx context.Context, q *chat.Request, w *chat.Writer, window int64) error {
	size := sizeOf(q)
	if window > 0 && int64(size.words) >= window {
		return tooLong(q, size, window)
	}
	s, problem := d.script(q, size, window)
	if problem != nil {
		return problem
	}
	choices := max(len(q.Prompts), 1) * q.N
	w.Usage(chat.Usage{Prompt: int64(size.words), Completion: int64(s.tokens() * choices), Reasoning: int64(len(s.thoughts) * choices)})
	p := pace{start: time.Now().Add(d.firstToken), interval: d.wordInterval}
	if s.slow {
		p.interval *= slowness
	}
	if err := s.perform(ctx, p, w, choices); err != nil {
		return err
	}
	return w.End()
}

func tooLong(q *chat.Request, size promptSize, window int64) *chat.Problem {
	p := &chat.Problem{Status: http.StatusBadRequest, Code: "context_length_exceeded", Param: "messages"}
	if q.Endpoint == chat.Completion {
		p.Param = "prompt"
	}
	p.Message = "the prompt has " + plural(size.words, "token") + ", and the context of the demo provider is " + plural(int(window), "token")
	p.Cure = "shorten it"
	return p
}

// pace is when each word is due.
type pace struct {
	start    time.Time
	interval time.Duration
}

// wait returns when word i is due, or when ctx ends.
func (p pace) wait(ctx context.Context, i int) error {
	d := time.Until(p.start.Add(time.Duration(max(i, 0)) * p.interval))
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
