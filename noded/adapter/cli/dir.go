package cli

import (
	"io/fs"
	"os"
	"path/filepath"
)

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
