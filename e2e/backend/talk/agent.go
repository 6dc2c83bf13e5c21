package talk

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Agent plays a command that reads a prompt and writes an object a line: {"delta"}, {"thought"}, {"usage"} or {"error"}.
// It returns the exit code.
func Agent(in io.Reader, out io.Writer) int {
	prompt, err := io.ReadAll(in)
	if err != nil {
		return 1
	}
	s := scriptOf(prompt)
	say := func(name string, v any) {
		b, err := json.Marshal(map[string]any{name: v})
		if err != nil {
			panic(err) // what is said always marshals
		}
		for line := string(b) + "\n"; line != ""; {
			size := len(line)
			if s == Split {
				size = 1
			}
			_, _ = io.WriteString(out, line[:size])
			line = line[size:]
		}
	}
	pieces := []string{FirstPiece, SecondPiece}
	switch s {
	case TooLong, Fail, Loading:
		say("error", "the command says what is wrong")
		return 1
	case Empty:
		pieces = nil
	case Refuse:
		pieces = []string{Refusal}
	case Think:
		say("thought", Thought)
	}
	if strings.Contains(string(prompt), "JSON object") || strings.Contains(string(prompt), "JSON schema") {
		pieces = []string{ObjectText}
	}
	for _, p := range pieces {
		say("delta", p)
		switch s {
		case Break:
			return 3
		case Linger:
			time.Sleep(time.Hour)
		}
	}
	say("usage", map[string]int{"in": len(strings.Fields(string(prompt))), "out": len(pieces)})
	return 0
}

// AgentFields is how a node reads the command's objects, in the words of a configuration.
func AgentFields() map[string]any {
	return map[string]any{
		"parser": "json_lines",
		"fields": map[string]any{"text": "delta", "reasoning": "thought", "error": "error", "prompt_tokens": "usage.in", "completion_tokens": "usage.out"},
	}
}

// Prompt writes a user's text that asks every kind for the same: talk's servers by script:, the demo provider by its own
// word.
func Prompt(s Script, demo string) string { return fmt.Sprintf("Say script:%s %s", s, demo) }
