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
