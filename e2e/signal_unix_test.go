//go:build unix

package e2e

import (
	"syscall"
	"testing"
)

// freeze stops a process without telling anyone; thaw lets it go on.
func freeze(t testing.TB, p *process) { t.Helper(); p.signal(t, syscall.SIGSTOP) }
func thaw(t testing.TB, p *process)   { t.Helper(); p.signal(t, syscall.SIGCONT) }

// terminate asks a process to stop in an orderly way.
func terminate(t testing.TB, p *process) { t.Helper(); p.signal(t, syscall.SIGTERM) }

// hangUp asks a daemon to read its file again.
func hangUp(t testing.TB, p *process) { t.Helper(); p.signal(t, syscall.SIGHUP) }

// quit ends a process with the stacks of all its goroutines as its last words.
func quit(t testing.TB, p *process) { t.Helper(); p.signal(t, syscall.SIGQUIT) }
