package chat

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Answer takes the rendered answer; an adapter.Answer is one.
type Answer interface {
	Head(status int, h http.Header) error
	Data(p []byte) error
}

// Options of a Writer. All may be left out.
type Options struct {
	Model       string    // of the answer; "" is the request's
	ID          string    // of the answer; "" is a random one
	Created     time.Time // zero is now
	Fingerprint string    // system_fingerprint; "" is null
	WholeMax    int       // bytes of an answer that is not streamed; 0 is 32 MiB
}

const wholeBytesMax = 32 << 20

// Reasons why a choice finishes.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
	FinishFilter    = "content_filter"
)

// ErrTooLarge says that an answer that is not streamed has grown beyond Options.WholeMax.
var ErrTooLarge = errors.New("the answer is larger than one that is not streamed may be")

// ErrUnfinished says that an answer ended before each choice had finished.
var ErrUnfinished = errors.New("the answer ended before its choices had finished")

// Writer renders one answer: Text, Reasoning, ToolCall … for each choice, then Finish, at last End. One goroutine uses
// it. In a stream everything is sent as it comes, else it is collected and sent by End. An error of the Answer stays:
// nobody reads any more, and everything later returns it.
type Writer struct {
	q       *Request
	a       Answer
	o       Options
	err     error // of the Answer
	begun   bool
	now     int       // the choice at hand
	choices []*choice // as far as they have been selected
	vectors [][]float32
	usage   Usage
	room    int    // bytes that an answer that is not streamed may still grow
	prefix  []byte // of each chunk
	buf     []byte // chunks that have not been sent
	held    bool   // chunks wait for Release
	owed    bool   // some do
}

// NewWriter returns a writer of the answer to q.
func NewWriter(q *Request, a Answer, o Options) *Writer {
	if o.Model == "" {
		o.Model = q.Model
	}
	if o.ID == "" {
		o.ID = map[Endpoint]string{Chat: "chatcmpl-", Completion: "cmpl-"}[q.Endpoint] + rand.Text()
	}
	if o.Created.IsZero() {
		o.Created = time.Now()
	}
	if o.WholeMax <= 0 {
		o.WholeMax = wholeBytesMax
	}
	w := &Writer{q: q, a: a, o: o, room: o.WholeMax}
	w.At(0)
	return w
}

// Begun reports whether the head has been sent.
func (w *Writer) Begun() bool { return w.begun }

// Err is the error of the Answer, if it has failed.
func (w *Writer) Err() error { return w.err }

// At selects the choice that the next calls are about, from 0. At first it is 0.
func (w *Writer) At(index int) {
	w.now = min(max(index, 0), choicesMax-1)
	for len(w.choices) <= w.now {
		w.choices = append(w.choices, &choice{index: len(w.choices), lastTool: -1})
	}
}

// Open sends the head of a stream before anything has come. It need not be called.
func (w *Writer) Open() error {
	if w.streams() {
		w.open()
	}
	return w.err
}

func (w *Writer) streams() bool { return w.q.Stream && w.q.Endpoint != Embedding }

// open sends a stream's head once.
func (w *Writer) open() {
	if w.begun || w.err != nil {
		return
	}
	w.begun = true
	w.err = w.a.Head(http.StatusOK, http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}})
}

// Text adds to the choice's text. A character may be split over calls: it is sent when it is whole.
func (w *Writer) Text(s string) error { return w.TextWith(s, nil) }

// TextWith is Text with what is known of its tokens.
func (w *Writer) TextWith(s string, tokens []TokenLogprob) error {
	c := w.choices[w.now]
	s = c.text.whole(s)
	if s == "" && len(tokens) == 0 {
		return w.err
	}
	if !w.streams() {
		c.content.WriteString(s)
		c.tokens = append(c.tokens, tokens...)
		return w.collected(len(s) + 32*len(tokens))
	}
	if w.q.Endpoint == Completion {
		return w.send(appendTextChoice(w.begin(c), c, s, tokens, ""))
	}
	return w.delta(c, "content", s, tokens)
}

// Reasoning adds to the choice's reasoning_content. The older completions have no place for it.
func (w *Writer) Reasoning(s string) error {
	c := w.choices[w.now]
	if s = c.think.whole(s); s == "" || w.q.Endpoint != Chat {
		return w.err
	}
	if !w.streams() {
		c.reasoning.WriteString(s)
		return w.collected(len(s))
	}
	return w.delta(c, "reasoning_content", s, nil)
}

// Refusal adds to the choice's refusal.
func (w *Writer) Refusal(s string) error {
	c := w.choices[w.now]
	if s = c.refuse.whole(s); s == "" || w.q.Endpoint != Chat {
		return w.err
	}
	if !w.streams() {
		c.refusal.WriteString(s)
		return w.collected(len(s))
	}
	return w.delta(c, "refusal", s, nil)
}

// ToolCall adds to tool call index of the choice, from 0 in order. id and name come with its first piece (an empty id
// becomes a random one), arguments in any number of them.
func (w *Writer) ToolCall(index int, id, name, arguments string) error {
	c := w.choices[w.now]
	if w.q.Endpoint != Chat {
		return w.err
	}
	first := index > c.lastTool
	if first {
		c.lastTool, c.args = index, carry{}
		if id == "" {
			id = "call_" + rand.Text()
		}
	}
	arguments = c.args.whole(arguments)
	if !w.streams() {
		if first {
			c.calls = append(c.calls, ToolCall{ID: id, Name: name})
		}
		c.calls[len(c.calls)-1].Arguments += arguments
		return w.collected(len(id) + len(name) + len(arguments))
	}
	b := append(w.begin(c), `{"tool_calls":[{"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	if first {
		b = appendQuoted(append(b, `,"id":`...), id)
		b = appendQuoted(append(b, `,"type":"function","function":{"name":`...), name)
		b = append(b, `,"arguments":`...)
	} else {
		b = append(b, `,"function":{"arguments":`...)
	}
	b = append(appendQuoted(b, arguments), "}}]}"...)
	return w.send(w.closeChoice(b, nil, ""))
}

// collected counts what an answer that is not streamed has grown by.
func (w *Writer) collected(n int) error {
	if w.room -= n; w.room < 0 && w.err == nil {
		return ErrTooLarge
	}
	return w.err
}

// Hold keeps what is rendered until Release, so that what came together goes out together. It need not be called.
func (w *Writer) Hold() { w.held = true }

// Release sends what has been held.
func (w *Writer) Release() error {
	w.held = false
	if w.owed {
		return w.flush()
	}
	return w.err
}

// Usage sets what the answer has cost. It is sent at the end.
func (w *Writer) Usage(u Usage) { w.usage = u }

// Finish ends the choice. Where tools were called, stop becomes tool_calls.
func (w *Writer) Finish(reason string) error {
	c := w.choices[w.now]
	if c.finish != "" {
		return w.err
	}
	if reason == FinishStop && c.lastTool >= 0 {
		reason = FinishToolCalls
	}
	if err := w.flushSplit(c); err != nil {
		return err
	}
	c.finish = reason
	switch {
	case !w.streams():
	case w.q.Endpoint == Completion:
		w.buf = appendTextChoice(w.begin(c), c, "", nil, reason)
		w.endChunk()
	default:
		w.buf = w.closeChoice(append(w.begin(c), "{}"...), nil, reason)
		w.endChunk()
	}
	return w.err
}

// flushSplit gives up on characters of which the rest never came.
func (w *Writer) flushSplit(c *choice) error {
	if s := c.think.rest(); s != "" {
		if err := w.Reasoning(s); err != nil {
			return err
		}
	}
	if s := c.refuse.rest(); s != "" {
		if err := w.Refusal(s); err != nil {
			return err
		}
	}
	if s := c.text.rest(); s != "" {
		return w.Text(s)
	}
	return nil
}

// End ends the answer in order: usage and [DONE], or the whole answer at once.
func (w *Writer) End() error {
	if w.err != nil {
		return w.err
	}
	if w.q.Endpoint == Embedding {
		return w.sendWhole(w.embeddings())
	}
	for _, c := range w.choices {
		if c.finish == "" {
			return ErrUnfinished
		}
	}
	if !w.streams() {
		return w.sendWhole(w.whole())
	}
	if w.q.IncludeUsage {
		w.buf = append(w.appendPrefix(w.buf), `],"usage":`...)
		w.buf = append(w.usage.append(w.buf, true), "}\n\n"...)
	}
	w.buf = append(w.buf, "data: [DONE]\n\n"...)
	return w.flush()
}

// Fail ends the answer with a problem. Before the head it is an error answer with its status, and the run has ended in
// order. Within a stream it is an error event and broke is true: the run must end as backend_broke, so that the client's
// connection is reset.
func (w *Writer) Fail(p *Problem) (broke bool, err error) {
	if !w.begun {
		if w.err == nil {
			w.begun = true
			w.err = p.Answer(w.a)
		}
		return false, w.err
	}
	if w.streams() {
		w.buf = append(append(append(w.buf, "data: "...), p.JSON()...), "\n\n"...)
		_ = w.flush()
	}
	return true, w.err
}
