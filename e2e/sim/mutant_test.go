package sim

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	flagMutants = flag.String("sim.mutants", "some", "which mutants to test: none, some, all, or a part of a name")
	flagMinute  = flag.Duration("sim.minute", time.Minute, "within what time a mutant has to be found")
)

// mutant is one rule changed for the worse. The source in the repository stays as it is: the go command gets the
// changed file as an overlay.
type mutant struct {
	name     string
	file     string // from the root of the module
	old, new string // old occurs once
	always   bool   // tested by a plain go test too
}

// TestMutants builds this package's tests with one rule planted wrong, and demands that the simulation fails within the
// minute. A patch that no longer fits its file fails too: bring it up to date with the rule.
func TestMutants(t *testing.T) {
	if *flagMutants == "none" || testing.Short() {
		t.Skip("-sim.mutants=none, or -short")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			changed := m.apply(t, root)
			switch {
			case *flagMutants == "some" && !m.always:
				t.Skip("the patch fits; make mutants has it found")
			case *flagMutants != "some" && *flagMutants != "all" && !strings.Contains(m.name, *flagMutants):
				t.Skip("not asked for")
			}
			binary := build(t, root, filepath.Join(root, m.file), changed)
			began := time.Now()
			cmd := exec.Command(binary, "-test.run=^TestSimulation$", "-test.timeout=5m", "-sim.mutants=none", "-sim.shrink=0", "-sim.for="+flagMinute.String())
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "again: go test") {
				t.Fatalf("not found within %v: %v\n%s", *flagMinute, err, tail(string(out)))
			}
			t.Logf("found after %v: %s", time.Since(began).Round(10*time.Millisecond), first(string(out)))
		})
	}
}

// apply returns the changed file's content.
func (m *mutant) apply(t *testing.T, root string) []byte {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("the patch no longer fits %s: its old text is there %d times. Write it anew for the rule as it is now:\n%s", m.file, n, m.old)
	}
	return []byte(strings.Replace(string(source), m.old, m.new, 1))
}

// build makes the test binary with one file replaced.
func build(t *testing.T, root, file string, content []byte) string {
	dir := t.TempDir()
	replacement, overlay, binary := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	files, err := json.Marshal(map[string]map[string]string{"Replace": {file: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{replacement: content, overlay: files} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-overlay", overlay, "-c", "-o", binary, "./e2e/sim")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not build: %v\n%s", err, out)
	}
	return binary
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// first is the line that says what is wrong.
func first(out string) string {
	_, after, _ := strings.Cut(out, "seed ")
	line, _, _ := strings.Cut(after, "\n")
	return line
}
