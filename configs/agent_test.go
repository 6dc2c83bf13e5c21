package configs

import (
	"strings"
	"testing"
)

// What is absent is told from the command itself.
func TestAgentIsToldFromItsCommand(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		cli     *CLI
		prompt  CLIPrompt
		parser  CLIParser
	}{
		"plain":           {[]string{"llm"}, nil, PromptStdin, ParserText},
		"codex":           {[]string{"codex", "exec", "--json", "-"}, nil, PromptStdin, ParserLines},
		"claude":          {[]string{"claude", "-p", "--output-format", "stream-json", "--verbose"}, &CLI{}, PromptStdin, ParserLines},
		"gemini":          {[]string{"gemini", "--output-format=stream-json", "-p", "{prompt}"}, nil, PromptArgument, ParserLines},
		"what is said":    {[]string{"x", "--json", "{model}"}, &CLI{Prompt: PromptStdin, Parser: ParserText}, PromptStdin, ParserText},
		"within argument": {[]string{"x", "--ask={prompt}"}, nil, PromptArgument, ParserText},
	} {
		a := Adapter{Type: AdapterCLI, Command: c.command, CLI: c.cli}
		if got := a.Agent(); got.Prompt != c.prompt || got.Parser != c.parser {
			t.Errorf("%s: prompt %s, parser %s; want %s, %s", name, got.Prompt, got.Parser, c.prompt, c.parser)
		}
	}
}

func TestUnknownVariableOfACommandIsWarnedAbout(t *testing.T) {
	a := Adapter{ID: "a", Type: AdapterCLI, Command: []string{"llm", "--model", "{mdel}", `{"json": true}`}}
	r := newReport()
	a.check(r, "a")
	if len(r.problems) != 0 || len(r.warnings) != 1 || !strings.Contains(r.warnings[0].Text, "{model}") {
		t.Errorf("problems %v, warnings %v; want one warning that names {model}", r.problems, r.warnings)
	}
}
