package adapter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// demoShape is how an endpoint frames the same text: chat completions or completions.
type demoShape interface {
	size(r *demoRequest) (promptSize, error)
	object(stream bool) string
	prefix() string
	// opening is the first choice of a stream, before any text; nil for none.
	opening() any
	piece(text string) any
	closing(reason string) any
	whole(text, reason string) any
}

// completion is an answer, or one chunk of a streamed one.
type completion struct {
	ID          string     `json:"id"`
	Object      string     `json:"object"`
	Created     int64      `json:"created"`
	Model       string     `json:"model"`
	Fingerprint string     `json:"system_fingerprint"`
	Choices     []any      `json:"choices"`
	Usage       *demoUsage `json:"usage,omitempty"`
}

type demoUsage struct {
	PromptTokens     int  `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens,omitempty"` // embeddings have none
	TotalTokens      int  `json:"total_tokens"`
}

// complete answers a completion of either shape, streamed or not.
func (d *Demo) complete(ctx context.Context, c *Call, a Answer, shape demoShape) error {
	r, err := d.parse(c.Body)
	if err != nil {
		return err
	}
	size, err := shape.size(r)
	if err != nil {
		return err
	}
	words, reason := cutWords(demoWords(size, d.words), r.maxTokens(), r.stops())
	n := len(words)
	usage := &demoUsage{PromptTokens: size.words, CompletionTokens: &n, TotalTokens: size.words + n}
	head := completion{
		ID:          shape.prefix() + rand.Text(),
		Object:      shape.object(r.Stream),
		Created:     time.Now().Unix(),
		Model:       r.Model,
		Fingerprint: "iop-demo",
	}
	p := pace{start: time.Now().Add(d.firstToken), interval: d.wordInterval}
	if r.Stream {
		s := demoStream{a: a, head: head, shape: shape}
		if r.StreamOptions.IncludeUsage {
			s.usage = usage
		}
		return s.send(ctx, p, words, reason)
	}
	if err := p.wait(ctx, n-1); err != nil {
		return err
	}
	head.Choices, head.Usage = []any{shape.whole(strings.Join(words, ""), reason)}, usage
	return answerJSON(a, http.StatusOK, head)
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

// demoStream is a streamed completion on its way.
type demoStream struct {
	a     Answer
	head  completion
	shape demoShape
	usage *demoUsage // nil: not asked for
}

// send streams the words at their pace, each in a chunk of its own.
func (s *demoStream) send(ctx context.Context, p pace, words []string, reason string) error {
	if err := p.wait(ctx, 0); err != nil {
		return err
	}
	h := http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	if err := s.a.Head(http.StatusOK, h); err != nil {
		return err
	}
	if opening := s.shape.opening(); opening != nil {
		if err := s.chunk(opening); err != nil {
			return err
		}
	}
	for i, w := range words {
		if err := p.wait(ctx, i); err != nil {
			return err
		}
		if err := s.chunk(s.shape.piece(w)); err != nil {
			return err
		}
	}
	if err := s.chunk(s.shape.closing(reason)); err != nil {
		return err
	}
	if s.usage != nil {
		s.head.Usage = s.usage
		if err := s.chunk(); err != nil {
			return err
		}
	}
	return s.a.Data([]byte("data: [DONE]\n\n"))
}

// chunk sends one frame with these choices.
func (s *demoStream) chunk(choices ...any) error {
	s.head.Choices = append([]any{}, choices...)
	b, err := json.Marshal(s.head)
	if err != nil {
		return fmt.Errorf("encode a chunk: %w", err)
	}
	frame := append(append([]byte("data: "), b...), "\n\n"...)
	return s.a.Data(frame)
}
