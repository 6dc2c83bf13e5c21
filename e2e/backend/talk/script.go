package talk

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Script is what a user's script:NAME asks of a server, beside what the request says.
type Script string

// The scripts. None is a short text.
const (
	None    Script = ""
	Call    Script = "call"    // call the tools, if they are offered
	Object  Script = "object"  // say a JSON object
	Think   Script = "think"   // think first
	Empty   Script = "empty"   // say nothing
	Refuse  Script = "refuse"  // refuse, in the place that the server has for it
	Split   Script = "split"   // send byte by byte, so that characters come in pieces
	TooLong Script = "toolong" // say that the prompt is longer than the context
	Fail    Script = "fail"    // fail before anything is said
	Break   Script = "break"   // fail after the first piece
	Linger  Script = "linger"  // say a piece, then wait until the caller leaves
	Loading Script = "loading" // say that the model is being loaded
)

// What is said, as it was recorded of a model.
const (
	FirstPiece  = " é1"
	SecondPiece = " 2"
	Thought     = "Hm."
	Refusal     = "No."
	ObjectText  = `{"a":1}`
)

func scripts() []Script {
	return []Script{Call, Object, Think, Empty, Refuse, Split, TooLong, Fail, Break, Linger, Loading}
}

// scriptOf finds the script in a request's body, or in a prompt.
func scriptOf(text []byte) Script {
	_, rest, found := bytes.Cut(text, []byte("script:"))
	if !found {
		return None
	}
	for _, s := range scripts() {
		if strings.HasPrefix(string(rest), string(s)) {
			return s
		}
	}
	return None
}

// request is what matters of a chat or a completion in OpenAI's shape.
type request struct {
	Model         string            `json:"model"`
	Messages      []json.RawMessage `json:"messages"`
	Stream        bool              `json:"stream"`
	N             int               `json:"n"`
	Stop          any               `json:"stop"`
	Logprobs      any               `json:"logprobs"`
	MaxTokens     int               `json:"max_tokens"`
	MaxCompletion int               `json:"max_completion_tokens"`
	Tools         []json.RawMessage `json:"tools"`
	ToolChoice    any               `json:"tool_choice"`
	Temperature   any               `json:"temperature"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Input any `json:"input"`
}

// said is one choice of an answer.
type said struct {
	thought, refusal string
	pieces           []string
	calls            bool // weather and now are called
	likely           bool // pieces come with their logprobs
	finish           string
}

// say decides what a choice says.
func (q *request) say(s Script) said {
	out := said{pieces: []string{FirstPiece, SecondPiece}, finish: "stop", likely: q.Logprobs != nil && q.Logprobs != false}
	switch {
	case s == Call && len(q.Tools) > 0 && q.ToolChoice != "none":
		return said{calls: true, finish: "tool_calls"}
	case s == Empty:
		return said{finish: "stop"}
	case s == Refuse:
		return said{refusal: Refusal, finish: "stop"}
	case s == Object:
		out.pieces = []string{ObjectText}
	case s == Think:
		out.thought = Thought
	}
	switch {
	case q.Stop != nil:
		out.pieces = out.pieces[:1]
	case q.MaxTokens == 1 || q.MaxCompletion == 1:
		out.pieces, out.finish = out.pieces[:1], "length"
	}
	return out
}
