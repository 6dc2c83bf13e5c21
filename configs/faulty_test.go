package configs

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// faultyEnv has what the faulty files speak of; its values are secrets that no message may show.
func faultyEnv(name string) (string, bool) {
	switch name {
	case "IOP_NODE_TOKEN", "IOP_ADMIN_TOKEN", "IOP_ID", "GPU", "NAME", "WORD":
		return "very-secret-" + name, true
	}
	return "", false
}

// Each file in testdata/faulty has one fault, apart from those named several-*; the .want file beside it holds what a
// person is told. The files named node-* are node files if they begin so, the others edge files.
func TestFaultyFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/faulty/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			problems := loadFaulty(t, file)
			if !strings.HasPrefix(name, "several-") && len(problems.List) != 1 {
				t.Errorf("one fault gives %d problems", len(problems.List))
			}
			if strings.HasPrefix(name, "several-") && len(problems.List) < 4 {
				t.Errorf("several faults give only %d problems", len(problems.List))
			}
			for _, p := range problems.List {
				if p.Cause == "" || p.Cure == "" {
					t.Errorf("%s: a problem needs cause and cure: %+v", file, p)
				}
			}
			got := problems.Error() + "\n"
			for _, secret := range []string{"very-secret", "very secret", "verysecret", "8675309"} {
				if strings.Contains(got, secret) {
					t.Errorf("the message shows a secret: %s", got)
				}
			}
			compareGolden(t, strings.TrimSuffix(file, ".yaml")+".want", got)
		})
	}
}

func loadFaulty(t *testing.T, file string) *Problems {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(string(data), "node:\n") {
		_, _, err = ParseNode(data, filepath.Base(file), faultyEnv)
	} else {
		_, _, err = ParseEdge(data, filepath.Base(file), faultyEnv)
	}
	var problems *Problems
	if !errors.As(err, &problems) {
		t.Fatalf("the file loads, or fails otherwise: %v", err)
	}
	return problems
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it; read what it wrote)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
