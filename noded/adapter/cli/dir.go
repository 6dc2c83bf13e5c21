package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// runDirs begins the name of each run's directory.
const runDirs = "run-"

// leftAfter is how long a run's directory may have been untouched and still be somebody's: longer than any run may take
// (24 h), and several adapters, or nodes, may share a scratch directory.
const leftAfter = 25 * time.Hour

// sweepDirs removes directories of runs whose node and keeper were both killed. It returns how many.
func sweepDirs(scratch string, now time.Time) (swept int) {
	entries, err := os.ReadDir(scratch)
	if err != nil {
		return 0 // not there yet, or the first run will tell
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), runDirs) || now.Sub(info.ModTime()) < leftAfter {
			continue
		}
		removeDir(filepath.Join(scratch, e.Name()))
		swept++
	}
	return swept
}

// removeDir removes a run's directory, also what the command has made unwritable for its owner.
func removeDir(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	_ = os.RemoveAll(dir) // what stays is another user's
}
