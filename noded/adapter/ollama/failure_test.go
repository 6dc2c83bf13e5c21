package ollama

import "testing"

// What Ollama quotes is a model's output, and the text goes into logs.
func TestFailureDoesNotQuote(t *testing.T) {
	for text, want := range map[string]string{
		`error parsing tool call: raw='{"city": "Bonn"}', err=unexpected end`: "error parsing tool call: raw",
		"llama runner process has terminated: exit status 2":                  "llama runner process has terminated: exit status 2",
		`"Bonn" is no number`: "",
	} {
		if got := (&failure{text: text}).unquoted(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
