package cli

import (
	"strings"

	"iop/noded/adapter/chat"
)

// How messages become one prompt. The only message that is no system message is the prompt as it stands. Several are a
// transcript:
//
//	Below is a conversation. Reply to its last message; write only the reply.
//
//	User:
//	What is the capital of France?
//
//	Assistant:
//	Paris.
//
//	User:
//	And of Spain?
//
// System and developer messages stand in front, under "Instructions:", or go to {system} if the command has it. A JSON
// format is asked for at the end, unless the command has {schema} or {schema_file}; nothing enforces it then.
const (
	transcriptHead   = "Below is a conversation. Reply to its last message; write only the reply."
	instructionsHead = "Instructions:"
	objectTail       = "Reply with one JSON object and nothing else: no code fence, no explanation."
	schemaTail       = "Reply with one JSON value that is valid under this JSON schema, and nothing else: no code fence, no explanation.\n"
)

// prompt is what an agent is given of a request.
type prompt struct {
	text   string
	system string // "" if it is part of text
	schema string // "" if it is part of text, or none is asked for
}

// compose makes the prompt of a request for a command with these arguments.
func compose(q *chat.Request, args []string) prompt {
	var system []string
	var turns []chat.Message
	for _, m := range q.Messages {
		if m.Role == "system" || m.Role == "developer" {
			system = append(system, m.Text())
		} else {
			turns = append(turns, m)
		}
	}
	p := prompt{system: strings.Join(system, "\n\n")}
	var parts []string
	if p.system != "" && !mentions(args, varSystem) {
		parts = append(parts, instructionsHead+"\n"+p.system)
		p.system = ""
	}
	parts = append(parts, conversation(turns)...)
	if tail := p.format(q.Format, args); tail != "" {
		parts = append(parts, tail)
	}
	p.text = strings.Join(parts, "\n\n")
	return p
}

// conversation is the turns of a prompt.
func conversation(turns []chat.Message) []string {
	if len(turns) == 1 && turns[0].Role == "user" {
		return []string{turns[0].Text()}
	}
	if len(turns) == 0 {
		return nil
	}
	parts := []string{transcriptHead}
	for _, m := range turns {
		parts = append(parts, turn(m))
	}
	return parts
}

// turn is one message of a transcript.
func turn(m chat.Message) string {
	head := map[string]string{"assistant": "Assistant", "tool": "Tool result", "function": "Tool result"}[m.Role]
	if head == "" {
		head = "User"
	}
	if m.Name != "" {
		head += " (" + strings.Join(strings.Fields(m.Name), " ") + ")"
	}
	lines := []string{head + ":"}
	if text := m.Text(); text != "" {
		lines = append(lines, text)
	}
	for _, c := range m.ToolCalls {
		lines = append(lines, "[called "+c.Name+" with "+c.Arguments+"]")
	}
	return strings.Join(lines, "\n")
}

// format is what the prompt says about the answer's shape.
func (p *prompt) format(f *chat.Format, args []string) string {
	switch {
	case f == nil:
		return ""
	case f.Kind == "json_object":
		return objectTail
	case f.Kind != "json_schema" || len(f.Schema) == 0:
		return ""
	case mentions(args, varSchema), mentions(args, varSchemaFile):
		p.schema = string(f.Schema)
		return ""
	}
	return schemaTail + string(f.Schema)
}
