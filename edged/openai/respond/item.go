package respond

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// item is an input or output item, as far as it is read. Which members count depends on its type.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
	Summary   []part          `json:"summary"`
}

// part is a part of a message's content.
type part struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	Refusal    string          `json:"refusal"`
	ImageURL   string          `json:"image_url"`
	Detail     string          `json:"detail"`
	FileID     string          `json:"file_id"`
	FileURL    string          `json:"file_url"`
	FileData   string          `json:"file_data"`
	Filename   string          `json:"filename"`
	InputAudio json.RawMessage `json:"input_audio"`
}

// Types of items.
const (
	typeMessage    = "message"
	typeReasoning  = "reasoning"
	typeCall       = "function_call"
	typeCallOutput = "function_call_output"
	typeReference  = "item_reference"
	typeCustom     = "custom_tool_call"
	typeCustomOut  = "custom_tool_call_output"
	typeShell      = "local_shell_call"
	typeShellOut   = "local_shell_call_output"
)

// idMark begins the id of an item, by its type.
var idMark = map[string]string{
	typeMessage: "msg_", typeReasoning: "rs_", typeCall: "fc_", typeCallOutput: "fco_", typeCustom: "ctc_", typeCustomOut: "ctco_",
	typeShell: "lsh_", typeShellOut: "lsho_",
}

// itemTypes are the types that can be sent, for messages.
var itemTypes = []string{
	typeMessage, typeCall, typeCallOutput, typeReasoning, typeReference, typeCustom, typeCustomOut, typeShell, typeShellOut,
}

// responseMark begins the id of a response.
const responseMark = "resp_"

// itemID is the id of the n-th item of a response; input items and output items count apart. It tells which response the
// item belongs to (ResponseOf).
func itemID(kind, response string, output bool, n int) string {
	side := byte('i')
	if output {
		side = 'o'
	}
	return idMark[kind] + strings.TrimPrefix(response, responseMark) + string(side) + strconv.Itoa(n)
}

// ResponseOf is the id of the response that an item of ours belongs to; false: the id is not one of ours.
func ResponseOf(item string) (string, bool) {
	_, rest, ok := strings.Cut(item, "_")
	end := strings.LastIndexAny(rest, "io")
	if !ok || end <= 0 {
		return "", false
	}
	if _, err := hex.DecodeString(rest[:end]); err != nil {
		return "", false
	}
	return responseMark + rest[:end], true
}

// readInput makes items of the input.
func (q *Request) readInput() *Problem {
	raw, ok := q.fields["input"]
	switch {
	case !ok && q.Previous == "" && q.fields["messages"] != nil:
		return &Problem{Code: CodeMissing, Param: "input", Message: "Missing required parameter: 'input'. This is /v1/responses; requests with 'messages' go to /v1/chat/completions."}
	case !ok && q.Previous == "":
		return missing("input")
	case !ok:
		return nil
	case raw[0] == '"':
		q.Items = []json.RawMessage{object(
			pair{"type", typeMessage}, pair{"id", itemID(typeMessage, q.ID, false, 0)}, pair{"status", "completed"}, pair{"role", "user"},
			pair{"content", array([]json.RawMessage{object(pair{"type", "input_text"}, pair{"text", raw})})},
		)}
		return nil
	}
	var list []json.RawMessage
	if p := decode("input", raw, &list); p != nil {
		return p
	}
	if len(list) == 0 && q.Previous == "" {
		return &Problem{Code: CodeValue, Param: "input", Message: "Invalid 'input': an empty array. Send at least one item."}
	}
	q.Items = make([]json.RawMessage, 0, len(list))
	for i, raw := range list {
		out, p := normalise(fmt.Sprintf("input[%d]", i), raw, q.ID, i)
		if p != nil {
			return p
		}
		q.Items = append(q.Items, out)
	}
	return nil
}

// normalise gives an item its type and an id.
func normalise(param string, raw json.RawMessage, response string, n int) (json.RawMessage, *Problem) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, wrongType(param, "an object", raw)
	}
	var it item
	if p := decode(param, raw, &it); p != nil {
		return nil, p
	}
	if it.Type == "" && it.Role != "" {
		it.Type = typeMessage
	}
	if _, p := it.read(param); p != nil {
		return nil, p
	}
	if it.Type == typeReference {
		return raw, nil
	}
	var fields map[string]json.RawMessage
	if p := decode(param, raw, &fields); p != nil {
		return nil, p
	}
	fields["type"] = quote(it.Type)
	if it.ID == "" {
		mark := it.Type
		if idMark[mark] == "" {
			mark = typeMessage
		}
		fields["id"] = quote(itemID(mark, response, false, n))
	}
	if it.Type == typeMessage && len(it.Content) > 0 && it.Content[0] == '"' {
		kind := "input_text"
		if it.Role == roleAssistant {
			kind = "output_text"
		}
		fields["content"] = array([]json.RawMessage{object(pair{"type", kind}, pair{"text", it.Content})})
	}
	return encode(fields), nil
}

// References are the ids of items that are only referred to.
func (q *Request) References() (ids []string) {
	for _, raw := range q.Items {
		if it, p := parse(raw); p == nil && it.Type == typeReference {
			ids = append(ids, it.ID)
		}
	}
	return ids
}

// Refer puts the items in the place of references to them.
func (q *Request) Refer(find func(id string) json.RawMessage) *Problem {
	for i, raw := range q.Items {
		it, p := parse(raw)
		if p != nil || it.Type != typeReference {
			continue
		}
		found := find(it.ID)
		if found == nil {
			return &Problem{Code: CodeValue, Param: fmt.Sprintf("input[%d].id", i), Message: "Item with id " + strconv.Quote(short(it.ID)) +
				" not found. Items can be referred to while their response is stored; otherwise send the item itself."}
		}
		q.Items[i] = found
	}
	return nil
}

// parse reads an item that was read before.
func parse(raw json.RawMessage) (*item, *Problem) {
	it := &item{}
	return it, decode("input", raw, it)
}
