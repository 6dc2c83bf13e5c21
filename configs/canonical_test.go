package configs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonicalComesBack(t *testing.T) {
	for _, file := range []string{"examples/edge.yaml", "examples/demo-edge.yaml"} {
		e, _, err := LoadEdge(file, exampleEnv)
		if err != nil {
			t.Fatal(err)
		}
		document := e.Canonical()
		back, err := ParseCluster(document)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&e.Cluster, back); diff != "" {
			t.Errorf("%s (-file +document):\n%s", file, diff)
		}
		if !bytes.Equal(document, back.Canonical()) {
			t.Errorf("%s: the bytes differ after a round", file)
		}
	}
}

// Two spellings of one configuration are one document, so that a restart with a reformatted file changes nothing.
func TestCanonicalOfEqualPartsIsEqual(t *testing.T) {
	a, _ := mustParse(t, minimal)
	b, _ := mustParse(t, strings.NewReplacer(
		"edge-1", "another", // the own part is not in it
		"{ id: m, providers: { p: served } }", "{ providers: { \"p\": 'served' }, id: m, generation: {} } # the model",
		"AAAA", "aaaa",
	).Replace(in(t, "models:", "provider_pool: { max_queue: 0, queue_timeout_ms: 30000 }\n")))
	if diff := cmp.Diff(string(a.Canonical()), string(b.Canonical())); diff != "" {
		t.Error(diff)
	}
	if got := string((&Cluster{}).Canonical()); strings.Contains(got, "null") {
		t.Errorf("lists must not be null: %s", got)
	}
}

func TestCanonicalHoldsNothingOfTheOwnPart(t *testing.T) {
	e, _ := mustParse(t, in(t, "models:", "  admin: { token: \"${IOP_ADMIN_TOKEN}\" }\n"))
	if document := string(e.Canonical()); strings.Contains(document, "secret") || strings.Contains(document, "edge-1") || strings.Contains(document, "hidden") {
		t.Error(document)
	}
}

func TestParseClusterOfOthers(t *testing.T) {
	if _, err := ParseCluster([]byte("{")); err == nil || !strings.HasPrefix(err.Error(), "read the cluster part: ") {
		t.Error(err)
	}
	// A newer replica's document has keys that this one does not know.
	c, err := ParseCluster([]byte(`{"models":[{"id":"m","providers":null,"later":1}],"new":{}}`))
	if err != nil || len(c.Models) != 1 || c.Models[0].Providers == nil || c.ProviderPool.MaxQueue != 16 {
		t.Errorf("%+v, %v", c, err)
	}
}
