package configs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretsAreNeverPrinted(t *testing.T) {
	n, _, err := ParseNode([]byte("node:\n  id: n\n  token: ${IOP_NODE_TOKEN}\n  edges: [\"127.0.0.1:1\"]\nenv: { KEY: \"${WORD}\" }\n"), "f", faultyEnv)
	if err != nil {
		t.Fatal(err)
	}
	if n.Node.Token.Reveal() != "very-secret-IOP_NODE_TOKEN" || n.Env["KEY"].Reveal() != "very-secret-WORD" {
		t.Fatal("Reveal does not give the value")
	}
	encoded, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("loaded", "token", n.Node.Token, "node", n)
	for _, out := range []string{
		fmt.Sprint(n.Node.Token, n), fmt.Sprintf("%v %+v %#v %s %q %x", *n, *n, *n, n.Node.Token, n.Node.Token, n.Node.Token), string(encoded), log.String(),
	} {
		if strings.Contains(out, "very-secret") || strings.Contains(out, fmt.Sprintf("%x", "very-secret")) {
			t.Errorf("printed: %s", out)
		}
	}
	if Secret("").String() != "" {
		t.Error("an empty secret must look empty")
	}
}

func TestNamesThatAreNoSecrets(t *testing.T) {
	for _, name := range []string{"sk-team", "ornith:35b", "hf-mirror/model-7b", "basic plan", "Bearer", "mlx/ornith-35b", "eyJ", "risk-assessment-model-with-long-name"} {
		if looksSecret(name) {
			t.Errorf("%q is taken for a secret", name)
		}
	}
}

func TestHashToken(t *testing.T) {
	if got := HashToken("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" { // FIPS 180-4, example
		t.Error(got)
	}
}
