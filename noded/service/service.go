// Package service makes noded a service of its operating system: a systemd unit, a launchd job, a Windows service.
//
// cmd/noded calls it for `noded service` and, on Windows, to answer the service manager. It writes what the system wants to
// read, and asks the system's own tools to do the rest; it knows nothing of what noded does.
//
// Where next: unit.go and plist.go (what is written), install_*.go (where it goes), manager_windows.go (being one).
package service

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Service says how noded is to be run.
type Service struct {
	Program string // absolute path of noded
	Config  string // absolute path of the node file
	User    string // systemd: who runs it; "" = iop
	Env     string // systemd: file with variables for ${NAME} in the node file, may be missing; "" = none
	Log     string // launchd: absolute path of the log file; "" = /usr/local/var/log/iop-noded.log
}

// Names under which the systems know it.
const (
	UnitName    = "iop-noded.service"
	Label       = "iop.noded"
	WindowsName = "iop-noded"
)

// Kind is a service manager.
type Kind string

// The service managers.
const (
	Systemd Kind = "systemd"
	Launchd Kind = "launchd"
	Windows Kind = "windows"
)

// KindOf is the service manager of an operating system, "" if there is none that is known.
func KindOf(goos string) Kind {
	switch goos {
	case "linux":
		return Systemd
	case "darwin":
		return Launchd
	case "windows":
		return Windows
	}
	return ""
}

// Text is what the service manager is given to read; for Windows, which reads no file, the command that does the same.
func (s Service) Text(k Kind) (string, error) {
	if err := s.check(k); err != nil {
		return "", err
	}
	switch k {
	case Systemd:
		return s.unit(), nil
	case Launchd:
		return s.plist(), nil
	case Windows:
		return fmt.Sprintf("sc.exe create %s binPath= \"%s\" start= delayed-auto\r\n", WindowsName, strings.ReplaceAll(s.CommandLine(), `"`, `\"`)), nil
	}
	return "", fmt.Errorf("service manager %q is not known: it is one of systemd, launchd, windows", k)
}

// CommandLine is what Windows starts.
func (s Service) CommandLine() string { return `"` + s.Program + `" --config "` + s.Config + `"` }

var errPath = errors.New("give absolute paths without control characters, quotes or %")

// check refuses what the formats could not carry as it is.
func (s Service) check(k Kind) error {
	for name, path := range map[string]string{"program": s.Program, "config": s.Config, "env": s.Env, "log": s.Log} {
		optional := name == "env" || name == "log"
		switch {
		case path == "" && optional:
		case !absolute(path, k), strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '"' || r == '%' || r == 0x7f }):
			return fmt.Errorf("%s %q: %w", name, path, errPath)
		}
	}
	if strings.ContainsFunc(s.User, func(r rune) bool { return r <= ' ' || r == '%' || r == '"' }) {
		return fmt.Errorf("user %q is no name", s.User)
	}
	return nil
}

// absolute is for the system that the text is for, which need not be this one.
func absolute(path string, k Kind) bool {
	if k == Windows {
		return len(path) > 3 && path[1] == ':' && (path[2] == '\\' || path[2] == '/') || strings.HasPrefix(path, `\\`) || filepath.IsAbs(path)
	}
	return strings.HasPrefix(path, "/")
}
