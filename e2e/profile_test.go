package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// profile is an edge file from testdata whose capital words a test replaces.
type profile struct {
	text  string
	nodes []string
}

// readProfile reads testdata/DIR/edge.yaml. words are what stands for what; the tokens of the nodes are known.
func readProfile(t testing.TB, dir string, nodes []string, words map[string]string) *profile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", dir, "edge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := &profile{text: string(b), nodes: nodes}
	for _, n := range nodes {
		p.replace("TOKEN_HASH_"+n, sha(nodeToken(n)))
	}
	for word, by := range words {
		p.replace(word, by)
	}
	return p
}

func (p *profile) replace(word, by string) { p.text = strings.ReplaceAll(p.text, word, by) }

func (p *profile) file(dataDir string) []byte {
	return []byte(strings.ReplaceAll(p.text, "DATA_DIR", dataDir))
}

// agentCommand makes the test binary play a CLI agent that speaks as codex does: see playAgent.
const agentCommand = "exec"

// playAgent reads a prompt to its end and answers it as "codex exec --json -" would.
func playAgent(in io.Reader, out io.Writer) int {
	prompt, err := io.ReadAll(in)
	if err != nil {
		return 1
	}
	w := bufio.NewWriter(out)
	for _, line := range []string{
		`{"type":"thread.started","thread_id":"0"}`,
		`{"type":"turn.started"}`,
		fmt.Sprintf(`{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"read %d bytes"}}`, len(prompt)),
		`{"type":"turn.completed","usage":{"input_tokens":7,"cached_input_tokens":0,"output_tokens":3}}`,
	} {
		_, _ = fmt.Fprintln(w, line)
	}
	if w.Flush() != nil {
		return 1
	}
	return 0
}
