package configs

import (
	"slices"
	"testing"
)

// No list and an empty list are opposites.
func TestCommandsOfANode(t *testing.T) {
	const file = "node:\n  id: n\n  token: ${IOP_NODE_TOKEN}\n  edges: [\"127.0.0.1:1\"]\n"
	for text, want := range map[string][]string{
		"":                                   nil,
		"commands: []":                       {},
		"commands: [a, /opt/b, 'C:\\c.exe']": {"a", "/opt/b", `C:\c.exe`},
	} {
		n, _, err := ParseNode([]byte(file+text), "node.yaml", faultyEnv)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(n.Commands, want) || (n.Commands == nil) != (want == nil) {
			t.Errorf("%q gives %#v", text, n.Commands)
		}
	}
}
