package edged

import (
	"maps"
	"testing"

	"iop/configs"
)

// The names are those that noded/agent.go reads; nodes of other versions do, too.
func TestAgentSettingsOnTheWire(t *testing.T) {
	a := configs.Adapter{ID: "a", Type: configs.AdapterCLI, Command: []string{"x"}, CLI: &configs.CLI{
		Prompt: "argument", Parser: "sse", Dialect: "codex", Env: []string{"A", "B"}, TimeoutMS: 1, GraceMS: 2, OutputMaxBytes: 3, Scratch: "/s",
		Fields: &configs.CLIFields{Text: "1", Final: "2", Reasoning: "3", Finish: "4", Error: "5", PromptTokens: "6", CompletionTokens: "7"},
	}}
	want := map[string]string{
		"prompt": "argument", "parser": "sse", "dialect": "codex", "env": "A B", "timeout_ms": "1", "grace_ms": "2", "output_max_bytes": "3", "scratch": "/s",
		"fields.text": "1", "fields.final": "2", "fields.reasoning": "3", "fields.finish": "4", "fields.error": "5", "fields.prompt_tokens": "6", "fields.completion_tokens": "7",
	}
	if got := adapterPayload(&a).GetSettings(); !maps.Equal(got, want) {
		t.Errorf("settings %v, want %v", got, want)
	}
	if got := adapterPayload(&configs.Adapter{Type: configs.AdapterCLI, Command: []string{"x", "--json"}}).GetSettings(); !maps.Equal(got, map[string]string{"prompt": "stdin", "parser": "json_lines"}) {
		t.Errorf("settings without a cli section: %v", got)
	}
}
