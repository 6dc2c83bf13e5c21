//go:build unix && !linux

package cli

import (
	"syscall"
	"time"
)

// adopt does nothing: only Linux lets a process take in the orphans below it.
func adopt() {}

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// family is the command's process group. A process that leaves it is out of reach.
type family struct{ leader int }

func (f family) signal(s syscall.Signal) { _ = syscall.Kill(-f.leader, s) } // it may be gone

const killPause = 20 * time.Millisecond

// kill kills all, again and again until this process ends with the last of them.
func (f family) kill() {
	for {
		f.signal(syscall.SIGKILL)
		time.Sleep(killPause)
	}
}

// awaitGone waits until the group is empty.
func (f family) awaitGone() {
	for syscall.Kill(-f.leader, 0) == nil {
		time.Sleep(killPause)
	}
}

// sweep kills the group of a command whose keeper was killed.
func sweep(_ string, leader int) {
	_ = syscall.Kill(-leader, syscall.SIGKILL) // it may be gone
}
