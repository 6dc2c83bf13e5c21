package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestWelcomeNamesTheCommandAsItIsCalled: what is printed can be pasted, where make run started it too.
func TestWelcomeNamesTheCommandAsItIsCalled(t *testing.T) {
	was := called
	t.Cleanup(func() { called = was })
	called = "go run ./cli/cmd/iopctl"
	var out bytes.Buffer
	(&gateway{stdout: &out}).welcome("127.0.0.1:8080", "127.0.0.1:1")
	if want := "\n  go run ./cli/cmd/iopctl queue list --edge 127.0.0.1:1\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out.String())
	}
	if want := "\nor in a browser: http://127.0.0.1:1/\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out.String())
	}
}
