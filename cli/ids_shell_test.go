package cli

import "testing"

// Bash expands words that it is offered: a name or an alias never reaches it as a command.
func TestCompletionRunsNoName(t *testing.T) {
	for text, want := range map[string]string{
		"ornith:35b": "ornith:35b", "맥 스튜디오": "맥 스튜디오", "$(touch x)": "_(touch x)", "`x`": "_x_", `it's \"`: "it_s __",
	} {
		if got := unshelled(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
