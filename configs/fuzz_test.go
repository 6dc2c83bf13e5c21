package configs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad: whatever a file holds, loading ends, gives a configuration or problems that each say where, what and how to
// mend it, shows no secret; and what it accepts survives the document.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"examples/*.yaml", "testdata/faulty/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	env := func(string) (string, bool) { return "hide-this-value", true }
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := ParseNode(data, "f", env); err != nil {
			checkFuzzed(t, err, data)
		}
		e, _, err := ParseEdge(data, "f", env)
		if err != nil {
			checkFuzzed(t, err, data)
			return
		}
		back, err := ParseCluster(e.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Canonical(), e.Canonical()) {
			t.Error("the document changes in a round")
		}
		if err := back.Validate(); err != nil {
			t.Errorf("accepted in the file, refused in the document: %v", err)
		}
	})
}

func checkFuzzed(t *testing.T, err error, data []byte) {
	t.Helper()
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Fatalf("not a list of problems: %v", err)
	}
	for _, p := range problems.List {
		if p.Cause == "" || p.Cure == "" {
			t.Errorf("a problem without cause or cure: %+v", p)
		}
	}
	if strings.Contains(err.Error(), "hide-this-value") && !bytes.Contains(data, []byte("hide")) {
		t.Errorf("the message shows a value of the environment: %v", err)
	}
}
