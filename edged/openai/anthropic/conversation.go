package anthropic

import (
	"encoding/json"
	"strconv"
)

// conversation makes chat's messages.
func (q *Request) conversation(c *chatRequest) *Problem {
	system, p := q.system(q.System, "system")
	if p != nil {
		return p
	}
	if len(system) > 0 {
		c.Messages = append(c.Messages, chatMessage{Role: "system", Content: content(system)})
	}
	calls := map[string]bool{}
	for i := range q.Messages {
		m, at := &q.Messages[i], "messages."+strconv.Itoa(i)
		list, p := blocks(m.Content, at+".content")
		if p != nil {
			return p
		}
		switch m.Role {
		case "user":
			p = c.user(list, at, calls)
		case "assistant":
			p = c.assistant(list, at, calls)
		case "system":
			var parts []part
			if parts, p = q.system(m.Content, at+".content"); p == nil {
				c.Messages = append(c.Messages, chatMessage{Role: "system", Content: content(parts)})
			}
		default:
			p = &Problem{at + ".role", at + ".role: Input should be 'user' or 'assistant'."}
		}
		if p != nil {
			return p
		}
	}
	return nil
}

func (q *Request) system(raw json.RawMessage, at string) ([]part, *Problem) {
	list, p := blocks(raw, at)
	if p != nil {
		return nil, p
	}
	parts := make([]part, 0, len(list))
	for i := range list {
		if list[i].Type != "text" {
			return nil, &Problem{at, at + ": Input should be text."}
		}
		parts = append(parts, textPart(list[i].Text))
	}
	return parts, nil
}

// user adds what a user says. Results of tools are messages of their own, and come first: they answer what was said before.
func (c *chatRequest) user(list []block, at string, calls map[string]bool) *Problem {
	var said []part
	for i := range list {
		b, at := &list[i], at+".content."+strconv.Itoa(i)
		if b.Type != "tool_result" {
			p, problem := b.part(at)
			if problem != nil {
				return problem
			}
			said = append(said, p)
			continue
		}
		if !calls[b.CallID] {
			return &Problem{at, at + ": unexpected tool_use_id found in tool_result blocks: " + strconv.Quote(b.CallID) +
				". Each tool_result block must have a corresponding tool_use block before it."}
		}
		pictures, problem := c.result(b, at)
		if problem != nil {
			return problem
		}
		said = append(said, pictures...)
	}
	if len(said) > 0 {
		c.Messages = append(c.Messages, chatMessage{Role: "user", Content: content(said)})
	}
	return nil
}

// result adds what a tool gave. Chat's tools can only give text: the rest of it is returned, to be shown by the user.
func (c *chatRequest) result(b *block, at string) (rest []part, p *Problem) {
	list, p := blocks(b.Content, at+".content")
	if p != nil {
		return nil, p
	}
	var text []part
	if b.Failed {
		text = append(text, textPart("The tool failed:"))
	}
	for i := range list {
		one, p := list[i].part(at + ".content." + strconv.Itoa(i))
		switch {
		case p != nil:
			return nil, p
		case one.Type == "text":
			text = append(text, one)
		default:
			rest = append(rest, one)
		}
	}
	c.Messages = append(c.Messages, chatMessage{Role: "tool", CallID: b.CallID, Content: content(text)})
	return rest, nil
}

// assistant adds what the model said, thought and called.
func (c *chatRequest) assistant(list []block, at string, calls map[string]bool) *Problem {
	m := chatMessage{Role: "assistant"}
	var said []part
	for i := range list {
		switch b := &list[i]; b.Type {
		case "text":
			said = append(said, textPart(b.Text))
		case "thinking":
			m.Reasoning += b.Thinking
		case "redacted_thinking":
		case "tool_use":
			calls[b.ID] = true
			arguments := string(b.Input)
			if arguments == "" {
				arguments = "{}"
			}
			m.ToolCalls = append(m.ToolCalls, chatCall{ID: b.ID, Type: "function", Function: chatFunction{Name: b.Name, Arguments: arguments}})
		default:
			_, p := b.part(at + ".content." + strconv.Itoa(i))
			if p == nil {
				p = &Problem{at, at + ": an assistant can't say a block of type " + strconv.Quote(b.Type) + "."}
			}
			return p
		}
	}
	if len(said) > 0 {
		m.Content = content(said)
	}
	if m.Content != nil || len(m.ToolCalls) > 0 {
		c.Messages = append(c.Messages, m)
	}
	return nil
}
