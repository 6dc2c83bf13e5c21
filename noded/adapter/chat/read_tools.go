package chat

import "slices"

func (q *Request) readTools(f fields) {
	items, _ := f.list("tools")
	for i, raw := range items {
		o, ok := f.asObject(item("tools", i), raw)
		if !ok {
			return
		}
		if kind := o.needed("type"); kind != "function" {
			o.unknown(o.path("type"), kind, []string{"function"})
			return
		}
		t, ok := o.object("function")
		if !ok {
			o.missing(o.path("function"))
			return
		}
		q.Tools = append(q.Tools, Tool{
			Name:        t.needed("name"),
			Description: t.text("description"),
			Parameters:  t.schema("parameters"),
			Strict:      t.yes("strict"),
		})
	}
	q.ParallelToolCalls = f.truth("parallel_tool_calls")
	q.readToolChoice(f)
}

func (q *Request) readToolChoice(f fields) {
	raw, ok := f.take("tool_choice")
	if !ok {
		return
	}
	const at = "tool_choice"
	switch raw[0] {
	case '"':
		q.ToolChoice.Mode = f.asText(at, raw)
		if modes := []string{"none", "auto", "required"}; !slices.Contains(modes, q.ToolChoice.Mode) {
			f.unknown(at, q.ToolChoice.Mode, modes)
		}
	case '{':
		o, _ := f.asObject(at, raw)
		if kind := o.needed("type"); kind != "function" {
			o.unknown(o.path("type"), kind, []string{"function"})
			return
		}
		t, ok := o.object("function")
		if !ok {
			o.missing(o.path("function"))
			return
		}
		q.ToolChoice = ToolChoice{Mode: "function", Name: t.needed("name")}
		if !slices.ContainsFunc(q.Tools, func(t Tool) bool { return t.Name == q.ToolChoice.Name }) {
			f.refuse(at, "invalid_value", "Invalid value for 'tool_choice': no tool named '%s' is in 'tools'.", q.ToolChoice.Name)
		}
	default:
		f.mistyped(at, "a string or an object", raw)
		return
	}
	if len(q.Tools) == 0 && q.ToolChoice.Mode != "none" && q.ToolChoice.Mode != "auto" {
		f.refuse(at, "invalid_value", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
}

func (m *Message) readToolCalls(f fields) {
	items, _ := f.list("tool_calls")
	for i, raw := range items {
		o, ok := f.asObject(item(f.path("tool_calls"), i), raw)
		if !ok {
			return
		}
		call := ToolCall{ID: o.needed("id")}
		if kind := o.text("type"); kind != "" && kind != "function" {
			o.unknown(o.path("type"), kind, []string{"function"})
			return
		}
		t, ok := o.object("function")
		if !ok {
			o.missing(o.path("function"))
			return
		}
		call.Name, call.Arguments = t.needed("name"), t.text("arguments")
		m.ToolCalls = append(m.ToolCalls, call)
	}
}
