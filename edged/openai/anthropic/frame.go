package anthropic

import (
	"bytes"
	"encoding/json"
)

// Bounds of an answer.
const (
	frameMax = 8 << 20  // one event of a stream
	callsMax = 32 << 20 // arguments that must wait for their turn
)

// frames cuts an event stream into the data of its events, wherever the network has cut it.
type frames struct {
	line []byte // the line at hand, if it came in pieces
	data []byte // of the event at hand
	has  bool   // it has data
	cr   bool   // the last byte was a CR that ended a line
}

// write takes the next bytes and calls each with the data of every event that is whole, and comment with every comment
// line. false: an event is too large.
func (f *frames) write(p []byte, each, comment func(line []byte)) bool {
	for len(p) > 0 {
		if f.cr && p[0] == '\n' {
			p = p[1:]
			f.cr = false
			continue
		}
		f.cr = false
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			f.line = append(f.line, p...)
			return len(f.line)+len(f.data) <= frameMax
		}
		line := append(f.line, p[:end]...)
		if len(line)+len(f.data) > frameMax {
			return false
		}
		f.cr, p = p[end] == '\r', p[end+1:]
		switch {
		case len(line) > 0 && line[0] == ':':
			comment(line)
		default:
			f.ended(line, each)
		}
		f.line = line[:0]
	}
	return true
}

// ended takes a whole line.
func (f *frames) ended(line []byte, each func(data []byte)) {
	if len(line) == 0 {
		if f.has {
			each(f.data)
		}
		f.data, f.has = f.data[:0], false
		return
	}
	rest, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(rest) > 0 && rest[0] != ':' {
		return // another field
	}
	if f.has {
		f.data = append(f.data, '\n')
	}
	rest = bytes.TrimPrefix(rest, []byte(":"))
	f.data, f.has = append(f.data, bytes.TrimPrefix(rest, []byte(" "))...), true
}

// chunk is a piece of a chat stream, or a whole answer.
type chunk struct {
	Choices []struct {
		Index   int             `json:"index"`
		Delta   *delta          `json:"delta"`
		Message *delta          `json:"message"`
		Finish  string          `json:"finish_reason"`
		Stopped json.RawMessage `json:"stop_reason"` // vLLM: the sequence that ended it
	} `json:"choices"`
	Usage *chatUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type delta struct {
	Content   string      `json:"content"`
	Refusal   string      `json:"refusal"`
	Reasoning string      `json:"reasoning_content"`
	Thinking  string      `json:"reasoning"` // what some servers call it
	ToolCalls []callDelta `json:"tool_calls"`
}

func (d *delta) thought() string {
	if d.Reasoning != "" {
		return d.Reasoning
	}
	return d.Thinking
}

type callDelta struct {
	Index    *int         `json:"index"`
	ID       string       `json:"id"`
	Function chatFunction `json:"function"`
}

type chatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// usage is what Anthropic calls it: what came out of a cache is not counted as input.
type usage struct {
	Input   int64 `json:"input_tokens"`
	Created int64 `json:"cache_creation_input_tokens"`
	Cached  int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

func (u *chatUsage) usage() usage {
	return usage{Input: max(u.Prompt-u.Details.Cached, 0), Cached: u.Details.Cached, Output: u.Completion}
}
