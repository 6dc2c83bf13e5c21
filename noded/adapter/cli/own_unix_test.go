//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Fault: the default scratch directory has a name that everybody knows, in a directory where everybody may write. Who made
// it first had the runs' directories in his hands.
func TestScratchDirectoryOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a directory another user's")
	}
	const somebody = 65534
	scratch := filepath.Join(t.TempDir(), "iop-runs")
	a, err := New(Config{Command: []string{os.Args[0]}, Scratch: scratch, Keeper: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Probe(t.Context(), ""); err != nil {
		t.Fatalf("one of its own: %v", err)
	}
	old := filepath.Join(scratch, runDirs+"old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * leftAfter)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{scratch, link} {
		if err := os.Lchown(dir, somebody, somebody); err != nil {
			t.Fatal(err)
		}
		a, err := New(Config{Command: []string{os.Args[0]}, Scratch: dir, Keeper: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Probe(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := os.Stat(old); err != nil {
		t.Errorf("something was removed there: %v", err)
	}
}
