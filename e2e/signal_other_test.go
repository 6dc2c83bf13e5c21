//go:build !unix

package e2e

import "testing"

func freeze(t testing.TB, _ *process) { t.Skip("no SIGSTOP here") }
func thaw(t testing.TB, _ *process)   { t.Skip("no SIGCONT here") }
func hangUp(t testing.TB, _ *process) { t.Skip("no SIGHUP here") }
func quit(t testing.TB, _ *process)   { t.Skip("no SIGQUIT here") }

// terminate has no signal to send here: the console events are tested by noded itself.
func terminate(_ testing.TB, p *process) { p.kill() }
