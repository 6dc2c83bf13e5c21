package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"iop/noded/adapter/chat"
)

// chatBody is what /api/chat takes.
type chatBody struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Tools    []tool    `json:"tools,omitempty"`
	generation
}

// generateBody is what /api/generate takes.
type generateBody struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	Suffix string `json:"suffix,omitempty"`
	generation
}

// embedBody is what /api/embed takes.
type embedBody struct {
	Model      string         `json:"model"`
	Input      []string       `json:"input"`
	Dimensions int            `json:"dimensions,omitempty"`
	Truncate   bool           `json:"truncate"`
	KeepAlive  any            `json:"keep_alive,omitempty"`
	Options    map[string]any `json:"options,omitempty"`
}

// generation is what they share. truncate and shift are false: a prompt that is too long is refused, not cut, and an
// answer that fills the context ends as length. Ollama streams always: so it is seen that it works, and what it does
// is bounded by what has come.
type generation struct {
	Stream      bool            `json:"stream"`
	Truncate    bool            `json:"truncate"`
	Shift       bool            `json:"shift"`
	Format      json.RawMessage `json:"format,omitempty"`
	Think       any             `json:"think,omitempty"`
	KeepAlive   any             `json:"keep_alive,omitempty"`
	Options     map[string]any  `json:"options,omitempty"`
	Logprobs    bool            `json:"logprobs,omitempty"`
	TopLogprobs int             `json:"top_logprobs,omitempty"`
}

type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	Thinking   string     `json:"thinking,omitempty"`
	Images     [][]byte   `json:"images,omitempty"` // base64, as encoding/json writes bytes
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolName   string     `json:"tool_name,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id,omitempty"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Index     int             `json:"index"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object, unlike OpenAI's text
}

type tool struct {
	Type     string       `json:"type"`
	Function toolDeclared `json:"function"`
}

type toolDeclared struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// unsupported is the problem of a request that Ollama can't do, nil if there is none. What it would leave out without a
// word is refused.
func unsupported(q *chat.Request) *chat.Problem {
	refuse := func(param, message, cure string) *chat.Problem {
		return &chat.Problem{Status: http.StatusBadRequest, Code: "unsupported_value", Param: param, Message: message, Cure: cure}
	}
	for i, m := range q.Messages {
		for j, p := range m.Parts {
			at := fmt.Sprintf("messages[%d].content[%d]", i, j)
			switch {
			case p.Kind == chat.PartImage && p.URL != "":
				return refuse(at+".image_url.url", "this provider does not fetch images", "send the image itself, as a data: URL with base64")
			case p.Kind == chat.PartAudio, p.Kind == chat.PartFile:
				return refuse(at, "this provider takes texts and images only", "leave the part out, or send its text")
			}
		}
		for j, c := range m.ToolCalls {
			if _, ok := arguments(c.Arguments); !ok {
				return refuse(fmt.Sprintf("messages[%d].tool_calls[%d].function.arguments", i, j), "the arguments are no JSON object", "send a JSON object as a string")
			}
		}
	}
	for name, inputs := range map[string][]chat.Input{"prompt": q.Prompts, "input": q.Inputs} {
		for _, in := range inputs {
			if in.Tokens != nil {
				return refuse(name, "this provider takes no tokens", "send the text")
			}
		}
	}
	switch {
	case q.Echo:
		return refuse("echo", "this provider can't echo the prompt", "leave echo out")
	case q.BestOf > q.N:
		return refuse("best_of", "this provider can't choose the best of several answers", "leave best_of out")
	case biased(q):
		return refuse("logit_bias", "this provider has no logit_bias", "leave it out")
	}
	_, problem := extraOptions(q)
	return problem
}

func biased(q *chat.Request) bool {
	var bias map[string]json.RawMessage
	return json.Unmarshal(q.Extra["logit_bias"], &bias) == nil && len(bias) > 0
}

// arguments makes the object of an OpenAI call's arguments.
func arguments(text string) (json.RawMessage, bool) {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}"), true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return nil, false
	}
	return json.RawMessage(text), true
}

// messages turns a conversation into Ollama's.
func messages(q *chat.Request) []message {
	names := map[string]string{} // of tools, by the id of their call
	out := make([]message, 0, len(q.Messages))
	for _, m := range q.Messages {
		o := message{Role: m.Role, Thinking: m.Reasoning, ToolCallID: m.ToolCallID}
		switch m.Role {
		case chat.RoleDeveloper:
			o.Role = chat.RoleSystem
		case chat.RoleFunction:
			o.Role, o.ToolName = chat.RoleTool, m.Name
		case chat.RoleTool:
			if o.ToolName = names[m.ToolCallID]; o.ToolName == "" {
				o.ToolName = m.Name
			}
		}
		var texts []string
		for _, p := range m.Parts {
			if p.Kind == chat.PartImage {
				o.Images = append(o.Images, p.Data)
			} else {
				texts = append(texts, p.Text)
			}
		}
		if m.Refusal != "" {
			texts = append(texts, m.Refusal)
		}
		o.Content = strings.Join(texts, "\n")
		for i, c := range m.ToolCalls {
			names[c.ID] = c.Name
			args, _ := arguments(c.Arguments)
			o.ToolCalls = append(o.ToolCalls, toolCall{ID: c.ID, Function: toolFunction{Index: i, Name: c.Name, Arguments: args}})
		}
		out = append(out, o)
	}
	return out
}

// offered are the tools that the model may call. Ollama can't be made to call one: a named tool is the only one offered.
func offered(q *chat.Request) []tool {
	var out []tool
	for _, t := range q.Tools {
		if q.ToolChoice.Mode == "none" || q.ToolChoice.Name != "" && q.ToolChoice.Name != t.Name {
			continue
		}
		params := t.Parameters
		if params == nil {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out = append(out, tool{Type: "function", Function: toolDeclared{Name: t.Name, Description: t.Description, Parameters: params}})
	}
	return out
}
