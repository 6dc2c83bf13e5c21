package configs

import (
	"strings"
	"testing"
)

// Fault: an Ollama over an openai_compat adapter cuts long prompts silently, and nothing said so.
func TestOllamaOverAnotherAdapterIsWarnedAbout(t *testing.T) {
	for adapter, want := range map[string]int{
		"type: openai_compat, base_url: \"http://127.0.0.1:11434/v1\"": 1,
		"type: ollama, base_url: \"http://127.0.0.1:11434\"":           0,
	} {
		_, warnings := mustParse(t, strings.NewReplacer("type: vllm", "type: ollama", "type: openai_compat, base_url: \"http://127.0.0.1:8000/v1\"", adapter).Replace(minimal))
		got := 0
		for _, w := range warnings {
			if strings.HasSuffix(w.Path, ".adapter") && strings.Contains(w.Text, "cuts a prompt") {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d warnings, want %d: %v", adapter, got, want, warnings)
		}
	}
}
