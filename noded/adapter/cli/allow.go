package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNotListed is the error of a command whose program the node does not let be started: see Config.Allowed.
var ErrNotListed = errors.New("is not under commands: in the node file, so it is not started here; add it there and restart noded")

// permitted gives the path to start for the command's program: what LookPath finds, if any program may be started. Else the
// program has to be the same file as one that is listed, and have its name (one file may be many programs, by the name it is
// called with); and then it is the listed path that is started, for a program may also look for its parts beside the link that
// leads to it.
func (a *Adapter) permitted() (string, error) {
	name := a.c.Command[0]
	if a.c.Allowed == nil {
		return lookUp(name)
	}
	var same []string
	for _, listed := range a.c.Allowed {
		if programName(listed) == programName(name) {
			same = append(same, listed)
		}
	}
	if len(same) == 0 {
		return "", fmt.Errorf("the program %s %w", name, ErrNotListed)
	}
	path, err := lookUp(name)
	if err != nil {
		return "", err
	}
	for _, listed := range same {
		if p, err := lookUp(listed); err == nil && sameFile(p, path) { // a listed program may be missing here
			return p, nil
		}
	}
	return "", fmt.Errorf("the program %s (%s) %w", name, path, ErrNotListed)
}

// lookUp finds a program, in PATH if its name has no separator.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find the command: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("find the command: %w", err)
	}
	return path, nil
}

// programName is the name by which a program is called, without its directory.
func programName(name string) string {
	base := filepath.Base(name)
	if runtime.GOOS == "windows" {
		base = strings.TrimSuffix(strings.ToLower(base), ".exe")
	}
	return base
}

// sameFile reports whether both paths, all links followed, end at one file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
