package e2e

import (
	"fmt"

	"iop/e2e/backend/talk"
)

const twoTools = `,"tools":[{"type":"function","function":{"name":"weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}},` +
	`{"type":"function","function":{"name":"now"}}]`

// toolConforms are about tools.
func toolConforms() []conform {
	refused := map[string]string{"cli": "400 " + badWord + " on `tools`"}
	call := script(talk.Call, "tool:weather")
	return []conform{
		{name: "tools", real: true, body: call + twoTools, check: called, but: refused, native: []string{`tools.0.function.name="weather"`, `tools.1.function.name="now"`}},
		{name: "tools in a stream", body: call + twoTools, stream: true, check: called, but: refused},
		{name: "tool_choice none", real: true, body: call + twoTools + `,"tool_choice":"none"`, check: talked, native: []string{"tools="}},
		{
			name: "tool_choice with a name", body: call + twoTools + `,"tool_choice":{"type":"function","function":{"name":"weather"}}`, check: called, but: refused,
			native: []string{`tools.0.function.name="weather"`, "tools.1="},
		},
		{
			name: "a tool's result",
			body: `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":"rain"}]`,
			real: true, check: talked,
			native: []string{`messages.1.tool_calls.0.function.arguments={"city":"Paris"}`, `messages.2.role="tool"`, `messages.2.tool_name="weather"`, `messages.2.content="rain"`},
		},
	}
}

// called: the weather tool was called.
func called(s *spoken) string {
	c := s.first()
	if len(c.calls) == 0 || c.calls[0].id == "" || c.calls[0].name != "weather" || c.finish != "tool_calls" {
		return fmt.Sprintf("calls %v, finish %q", c.calls, c.finish)
	}
	var arguments struct{ City *string }
	if err := unmarshal(c.calls[0].arguments, &arguments); err != nil || arguments.City == nil {
		return fmt.Sprintf("arguments %s: %v", c.calls[0].arguments, err)
	}
	return ""
}

// talked: there is text, and no call.
func talked(s *spoken) string {
	if c := s.first(); c.text == "" || len(c.calls) > 0 {
		return fmt.Sprintf("text %q, calls %v", c.text, c.calls)
	}
	return ""
}
