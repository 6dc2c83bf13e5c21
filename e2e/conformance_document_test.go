package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// observed are cells: case, then column.
type observed map[string]map[string]string

func (o observed) note(name, column, cell string) {
	if o[name] == nil {
		o[name] = map[string]string{}
	}
	o[name][column] = cell
}

// documentPath is the document that the table is written into, between its marks.
const (
	documentPath  = "../docs/PROVIDERS.md"
	documentBegin = "<!-- table: go test ./e2e -run TestConformance -update -->\n"
	documentEnd   = "<!-- end of table -->\n"
)

// document compares the table in the document with what was observed, or writes it anew.
func (o observed) document(t *testing.T) {
	t.Helper()
	old, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := bytes.Cut(old, []byte(documentBegin))
	_, tail, ends := bytes.Cut(rest, []byte(documentEnd))
	if !begins || !ends {
		t.Fatalf("%s has lost the marks of its table", documentPath)
	}
	fresh := slices.Concat(head, []byte(documentBegin), o.table(t), []byte(documentEnd), tail)
	if bytes.Equal(old, fresh) {
		return
	}
	if *update {
		if err := os.WriteFile(documentPath, fresh, 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	t.Errorf("docs/PROVIDERS.md says otherwise than what was observed; look, and run go test ./e2e -run 'TestConformance$' -update:\n%s", o.table(t))
}

// table renders the observations; rows in which all kinds do as asked say so once.
func (o observed) table(t *testing.T) []byte {
	t.Helper()
	columns := []string{"openai_compat", "vllm", "llamacpp", "ollama", "cli", "demo"}
	recorded := recordings(t)
	servers := slices.Sorted(maps.Keys(recorded))
	var b bytes.Buffer
	header := append(slices.Clone(columns), servers...)
	fmt.Fprintf(&b, "| a client asks for | %s |\n|---%s|\n", strings.Join(header, " | "), strings.Repeat("|---", len(header)))
	for _, c := range conforms() {
		row := []string{c.name}
		for _, k := range columns {
			row = append(row, short(o[c.name][k]))
		}
		for _, s := range servers {
			row = append(row, short(recorded[s][c.name]))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.Bytes()
}

// short is a cell as the table has it.
func short(cell string) string {
	if cell == asAsked {
		return "✓"
	}
	return cell
}

// recordings are what real servers were observed to do, by the title of their column: testdata/conformance.
func recordings(t *testing.T) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/conformance/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		title, rest, _ := strings.Cut(string(text), "\n")
		out[title] = map[string]string{}
		for line := range strings.Lines(rest) {
			name, cell, _ := strings.Cut(strings.TrimRight(line, "\n"), " = ")
			out[title][name] = cell
		}
	}
	return out
}
