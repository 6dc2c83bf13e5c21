package respond

import (
	"encoding/json"
	"fmt"
	"strings"
)

// message is a message of chat.
type message struct {
	Role      string     `json:"role"`
	Content   any        `json:"content"` // string, []any or nil
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
	ToolID    string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Roles of chat.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// roles are those of messages in an input.
var roles = []string{"user", "assistant", "system", "developer"}

// ignored are items that agents pass back and that say nothing to a backend: what OpenAI's own tools did.
var ignored = map[string]bool{
	"web_search_call": true, "image_generation_call": true, "tool_search_call": true, "tool_search_output": true,
}

// read makes a message of chat of an item; nil = it says nothing to a backend. Reasoning alone is a message with
// nothing but its reasoning, and a call one with nothing but the call: join puts them together.
func (it *item) read(param string) (*message, *Problem) {
	switch it.Type {
	case typeMessage:
		return it.message(param)
	case typeReasoning:
		return &message{Role: roleAssistant, Reasoning: it.reasoning()}, nil
	case typeCall, typeCustom, typeShell:
		return it.call(param)
	case typeCallOutput, typeCustomOut, typeShellOut:
		return it.output(param)
	case typeReference:
		if it.ID == "" {
			return nil, missing(param + ".id")
		}
		return nil, nil
	case "":
		return nil, missing(param + ".type")
	}
	if ignored[it.Type] {
		return nil, nil
	}
	return nil, wrongValue(param+".type", it.Type, itemTypes)
}

func (it *item) message(param string) (*message, *Problem) {
	m := &message{Role: it.Role}
	switch it.Role {
	case "developer":
		m.Role = roleSystem // templates of local models know no other
	case "user", "assistant", "system":
	default:
		return nil, wrongValue(param+".role", it.Role, roles)
	}
	content, p := readContent(param+".content", it.Content)
	m.Content = content
	return m, p
}

// readContent makes content of chat of the parts of a message or of a tool's output: a string if it is only text.
func readContent(param string, raw json.RawMessage) (any, *Problem) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, missing(param)
	}
	if raw[0] == '"' {
		return text(raw), nil
	}
	if raw[0] != '[' {
		return nil, wrongType(param, "a string or an array of parts", raw)
	}
	var list []part
	if p := decode(param, raw, &list); p != nil {
		return nil, p
	}
	var texts []string
	parts := make([]any, 0, len(list))
	for i := range list {
		c, plain, p := list[i].content(fmt.Sprintf("%s[%d]", param, i))
		if p != nil {
			return nil, p
		}
		if c == nil {
			texts = append(texts, plain)
			c = map[string]string{"type": "text", "text": plain}
		}
		parts = append(parts, c)
	}
	if len(texts) == len(parts) && len(parts) < 2 {
		return strings.Join(texts, ""), nil
	}
	return parts, nil
}

// partTypes are the parts that can be sent, for messages.
var partTypes = []string{"input_text", "input_image", "input_file", "input_audio", "output_text", "refusal"}

// content is the part in chat's shape, or nil and its text.
func (c *part) content(param string) (any, string, *Problem) {
	switch c.Type {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return nil, c.Text, nil
	case "refusal":
		return nil, c.Refusal, nil
	case "input_image":
		if c.ImageURL == "" {
			return nil, "", unsupported(param+".file_id", "Uploaded files are not supported here. Send the picture as 'image_url': a data URL, or a link.")
		}
		u := map[string]string{"url": c.ImageURL}
		if c.Detail != "" {
			u["detail"] = c.Detail
		}
		return map[string]any{"type": "image_url", "image_url": u}, "", nil
	case "input_file":
		if c.FileData == "" {
			return nil, "", unsupported(param+".file_id", "Uploaded files and links to files are not supported here. Send the content as 'file_data': a data URL.")
		}
		return map[string]any{"type": "file", "file": map[string]string{"filename": c.Filename, "file_data": c.FileData}}, "", nil
	case "input_audio":
		if len(c.InputAudio) == 0 {
			return nil, "", missing(param + ".input_audio")
		}
		return map[string]any{"type": "input_audio", "input_audio": c.InputAudio}, "", nil
	}
	return nil, "", wrongValue(param+".type", c.Type, partTypes)
}

// reasoning is the text of a reasoning item: its content, or else its summary.
func (it *item) reasoning() string {
	var list []part
	_ = json.Unmarshal(it.Content, &list) // null and nothing are as good as none
	if len(list) == 0 {
		list = it.Summary
	}
	var all []string
	for i := range list {
		all = append(all, list[i].Text)
	}
	return strings.Join(all, "\n")
}

// call makes a call of a function of a call of any tool, as tool.go has offered it.
func (it *item) call(param string) (*message, *Problem) {
	name, arguments := it.Name, it.Arguments
	switch {
	case it.CallID == "":
		return nil, missing(param + ".call_id")
	case it.Type == typeShell:
		name, arguments = shellName, string(it.Action)
	case it.Name == "":
		return nil, missing(param + ".name")
	case it.Type == typeCustom:
		arguments = string(object(pair{customInput, it.Input}))
	case it.Namespace != "":
		name = inNamespace(it.Namespace, it.Name)
	}
	if arguments == "" {
		arguments = "{}"
	}
	c := toolCall{ID: it.CallID, Type: "function", Function: function{Name: name, Arguments: arguments}}
	return &message{Role: roleAssistant, ToolCalls: []toolCall{c}}, nil
}

func (it *item) output(param string) (*message, *Problem) {
	id := it.CallID
	if id == "" && it.Type == typeShellOut {
		id = it.ID // OpenAI's own shape has the call's id there
	}
	if id == "" {
		return nil, missing(param + ".call_id")
	}
	content, p := readContent(param+".output", it.Output)
	return &message{Role: roleTool, Content: content, ToolID: id}, p
}
