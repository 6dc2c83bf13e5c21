package anthropic

import (
	"encoding/json"
	"slices"

	"iop/edged/openai/pieces"
)

// callsMax bounds the arguments of calls that wait for their turn, in bytes.
const callsMax = 32 << 20

// Run makes one message of what a backend answers. It is used by one goroutine.
type Run struct {
	q      *Request
	id     string
	model  string
	usage  usage
	finish string
	stop   string // the sequence that ended it, if the backend says so

	frames  pieces.Frames
	chunk   pieces.Chunk // the last one
	out     []byte
	started bool
	done    bool
	failed  *Problem

	kind    blockKind // of the block that is open
	index   int       // of the next block
	calls   []*call
	waiting int // bytes of arguments that wait
}

type blockKind uint8

const (
	blockNone blockKind = iota
	blockText
	blockThinking
	blockCall
)

// call is a tool_use block: one at a time can be open, the others wait.
type call struct {
	index     int // that chat has for it
	id, name  string
	arguments []byte // those not sent yet
	open      bool
}

// NewRun begins an answer to q. id names the message; model is its name as the client knows it; input is an estimate of
// the input's tokens, which a stream must tell before the backend has.
func NewRun(q *Request, id, model string, input int64) *Run {
	return &Run{q: q, id: id, model: model, usage: usage{Input: input}}
}

// reason is why the answer ended.
func (r *Run) reason() string {
	switch {
	case r.stop != "":
		return "stop_sequence"
	case r.finish == "length":
		return "max_tokens"
	case r.finish == "content_filter":
		return "refusal"
	case r.finish == "tool_calls", r.finish == "function_call", len(r.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// stopped notes what a choice says of its end.
func (r *Run) stopped(finish string, by json.RawMessage) {
	if finish == "" {
		return
	}
	r.finish = finish
	var s string
	if json.Unmarshal(by, &s) == nil && slices.Contains(r.q.Stop, s) {
		r.stop = s
	}
}

// Problem is why the answer can't come to a good end, nil if it can.
func (r *Run) Problem() *Problem { return r.failed }

func (r *Run) broken(message string) {
	if r.failed == nil {
		r.failed = &Problem{Message: message}
	}
}

// theirs is a backend's own error.
func theirs(raw json.RawMessage) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &e) != nil {
		_ = json.Unmarshal(raw, &e.Message) // else it says nothing
	}
	if e.Message == "" {
		return "The provider failed. Try again."
	}
	return e.Message
}
