package edged

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"iop/configs"
	"iop/proto/nodepb"
)

// What a node needs of an Ollama server and of a window reaches it, and what is not given does not.
func TestTheSettingsOfOllamaReachTheNode(t *testing.T) {
	got := payload(&configs.CatalogNode{
		Adapters: []configs.Adapter{
			{ID: "a", Type: configs.AdapterOllama, BaseURL: "http://h:1", Ollama: &configs.Ollama{NumCtx: 8192, KeepAlive: "1h", Think: "off"}},
			{ID: "b", Type: configs.AdapterOllama, BaseURL: "http://h:2"},
		},
		Providers: []configs.Provider{{ID: "p", Type: configs.ProviderOllama, Adapter: "a", Capacity: 1, ContextWindowTokens: 4096}},
	})
	want := &nodepb.NodeConfigPayload{
		Adapters: []*nodepb.AdapterConfig{
			{Id: "a", Type: "ollama", BaseUrl: "http://h:1", Settings: map[string]string{"num_ctx": "8192", "keep_alive": "1h", "think": "off"}},
			{Id: "b", Type: "ollama", BaseUrl: "http://h:2"},
		},
		Providers: []*nodepb.ProviderConfig{{Id: "p", Type: "ollama", Adapter: "a", Capacity: 1, ContextWindowTokens: 4096}},
	}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Errorf("(want, got):\n%s", d)
	}
}
