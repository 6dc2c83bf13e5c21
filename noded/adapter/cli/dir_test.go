package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Fault: the directories of runs whose node and keeper were both killed stayed for ever.
func TestDirectoriesThatNobodyHasAreSwept(t *testing.T) {
	scratch := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"run-dead": 26 * time.Hour, "run-alive": 24 * time.Hour, "other": 48 * time.Hour} {
		dir := filepath.Join(scratch, name)
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "below"), 0o500); err != nil { //nolint:gosec // a directory
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(scratch, "run-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(scratch, "run-file"), now.Add(-48*time.Hour), now.Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := sweepDirs(scratch, now); n != 1 {
		t.Errorf("%d swept, want 1", n)
	}
	for name, there := range map[string]bool{"run-dead": false, "run-alive": true, "other": true, "run-file": true} {
		if _, err := os.Stat(filepath.Join(scratch, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := sweepDirs(filepath.Join(scratch, "nothing"), now); n != 0 {
		t.Errorf("%d swept where nothing is", n)
	}
}
