package pieces

import "encoding/json"

// Chunk is a piece of a chat stream, or a whole answer.
type Chunk struct {
	Choices []Choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"` // an object, or nothing
	Error   json.RawMessage `json:"error"`
}

// Failed tells whether the backend told an error instead of a piece.
func (c *Chunk) Failed() bool { return len(c.Error) > 0 && string(c.Error) != "null" }

// Counted gives the usage, nil if there is none.
func (c *Chunk) Counted() json.RawMessage {
	if len(c.Usage) == 0 || c.Usage[0] != '{' {
		return nil
	}
	return c.Usage
}

// First gives the first choice, nil if the chunk has none: neither API that is built on chat has more than one.
func (c *Chunk) First() *Choice {
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			return &c.Choices[i]
		}
	}
	return nil
}

// Choice is what a chunk says of one of the answers.
type Choice struct {
	Index    int             `json:"index"`
	Delta    *Delta          `json:"delta"`
	Message  *Delta          `json:"message"` // of a whole answer
	Finish   string          `json:"finish_reason"`
	Stopped  json.RawMessage `json:"stop_reason"` // vLLM: the sequence that ended it
	Logprobs *Logprobs       `json:"logprobs"`

	room *Delta // where the next delta is read into
}

// Added is what the choice adds, of a stream or of a whole answer; nil = nothing.
func (c *Choice) Added() *Delta {
	if c.Delta != nil {
		return c.Delta
	}
	return c.Message
}

// Delta is what is added to an answer.
type Delta struct {
	Content   string `json:"content"`
	Refusal   string `json:"refusal"`
	Reasoning string `json:"reasoning_content"`
	Thinking  string `json:"reasoning"` // what some servers call it
	ToolCalls []Call `json:"tool_calls"`
}

// Thought is the reasoning, whatever the server calls it.
func (d *Delta) Thought() string {
	if d.Reasoning != "" {
		return d.Reasoning
	}
	return d.Thinking
}

// Call is a piece of a call of a function.
type Call struct {
	Index    *int     `json:"index"` // nil = its place in the list
	ID       string   `json:"id"`
	Function Function `json:"function"`
}

// Function is what is called, and a piece of its arguments.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Logprobs are the likely words of a piece, as the backend told them.
type Logprobs struct {
	Content []json.RawMessage `json:"content"`
}
