package configs

import (
	"strings"
	"testing"
)

// withLegacy gives a file whose two providers say these legacy keys.
func withLegacy(first, second, pool string) string {
	text := strings.Replace(minimal, "capacity: 2 }", "capacity: 2"+first+" }\n      - { id: q, type: vllm, adapter: a, models: [served], capacity: 1"+second+" }", 1)
	return strings.Replace(text, "models:\n", pool+"models:\n", 1)
}

func TestLegacyQueueBoundsArePromoted(t *testing.T) {
	for _, c := range []struct {
		name, first, second, pool string
		queue                     int
		timeout                   Millis
		warning                   string
	}{
		{"equal", ", max_queue: 7", ", max_queue: 7", "", 7, 30000, "taken as provider_pool.max_queue"},
		{"one only", "", ", max_queue: 7, queue_timeout_ms: 0", "", 7, 0, "taken as provider_pool.queue_timeout_ms"},
		{"root holds", ", max_queue: 7", ", max_queue: 7", "provider_pool: { max_queue: 9 }\n", 9, 30000, "ignored: provider_pool.max_queue holds"},
		{"other root key", ", max_queue: 7", "", "provider_pool: { queue_timeout_ms: 9 }\n", 7, 9, "taken as"},
		{"root key without value", ", max_queue: 7", "", "provider_pool: { max_queue: }\n", 7, 30000, "taken as"},
		{"pool without value", ", max_queue: 7", "", "provider_pool:\n", 7, 30000, "taken as"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, warnings := mustParse(t, withLegacy(c.first, c.second, c.pool))
			if e.ProviderPool.MaxQueue != c.queue || e.ProviderPool.QueueTimeoutMS != c.timeout {
				t.Errorf("pool %+v", e.ProviderPool)
			}
			found := false
			for _, w := range warnings {
				found = found || strings.Contains(w.Text, c.warning) && strings.HasPrefix(w.Path, "nodes[0].providers[") && w.Line > 0
			}
			if !found {
				t.Errorf("warnings %v, want %q", warnings, c.warning)
			}
			if strings.Contains(string(e.Canonical()), `"max_queue":7,"queue_timeout_ms":0,"id"`) {
				t.Error("the legacy key stays at the provider")
			}
		})
	}
}

func TestLegacyConcurrencyIsKeptAndGatesNothing(t *testing.T) {
	e, warnings := mustParse(t, in(t, "    adapters:", "    runtime: { concurrency: 3 }\n"))
	if e.Nodes[0].Runtime.Concurrency != 3 || e.Nodes[0].Providers[0].Capacity != 2 {
		t.Errorf("node %+v", e.Nodes[0])
	}
	if len(warnings) != 1 || warnings[0].Path != "nodes[0].runtime.concurrency" {
		t.Errorf("warnings %v", warnings)
	}
}

func TestTypesAreNormalised(t *testing.T) {
	text := strings.NewReplacer("type: openai_compat", "type: seulgivibe_claude", "type: vllm", "type: seulgivibe_openai").Replace(minimal)
	e, _ := mustParse(t, text)
	if a := e.Nodes[0].Adapters[0]; a.Type != AdapterOpenAI {
		t.Errorf("adapter %+v", a)
	}
	if p := e.Nodes[0].Providers[0]; p.Label != "seulgivibe_openai" {
		t.Errorf("the label of a provider that gives none is its type, got %q", p.Label)
	}
	e, _ = mustParse(t, strings.Replace(text, "capacity: 2", "capacity: 2, label: claude-at-home", 1))
	if p := e.Nodes[0].Providers[0]; p.Label != "claude-at-home" {
		t.Errorf("an explicit label holds, got %q", p.Label)
	}
}

func TestProviderTypesAndAdapters(t *testing.T) {
	for _, c := range []struct{ provider, adapter string }{
		{"ollama", "type: ollama, base_url: \"http://127.0.0.1:11434\""},
		{"ollama", "type: openai_compat, base_url: \"http://127.0.0.1:11434/v1\""},
		{"lmstudio", "type: lmstudio, base_url: \"http://127.0.0.1:1234/v1\""},
		{"cli", "type: cli, command: [codex, exec]"},
		{"demo", "type: demo"},
	} {
		text := strings.NewReplacer("type: vllm", "type: "+c.provider, "type: openai_compat, base_url: \"http://127.0.0.1:8000/v1\"", c.adapter).Replace(minimal)
		e, _ := mustParse(t, text)
		if a := e.Nodes[0].Adapters[0]; a.Type == AdapterDemo && (a.Demo == nil || a.Demo.Words != 40) {
			t.Errorf("a demo without settings has the default pace, got %+v", a.Demo)
		}
	}
	unlimited := strings.NewReplacer("type: vllm", "type: cli", ", capacity: 2", "", "type: openai_compat, base_url: \"http://127.0.0.1:8000/v1\"", "type: cli, command: [x]").Replace(minimal)
	if e, _ := mustParse(t, unlimited); e.Nodes[0].Providers[0].Capacity != 0 {
		t.Error("a cli provider may be unlimited")
	}
}
