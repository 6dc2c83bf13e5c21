//go:build unix

package cli

import (
	"fmt"
	"os"
	"syscall"
)

// owned refuses a scratch directory of another user: whoever owns it can put something else in the place of a run's
// directory, or a link to where nothing may be written or removed. The default one is in the directory for temporary
// files, where anybody can be first to make it.
func owned(dir string) error {
	for _, look := range []func(string) (os.FileInfo, error){os.Lstat, os.Stat} {
		info, err := look(dir)
		if err != nil {
			return fmt.Errorf("look at the scratch directory: %w", err)
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
			return fmt.Errorf("the scratch directory %s belongs to another user: remove it, or name another one in cli.scratch", dir)
		}
	}
	return nil
}
