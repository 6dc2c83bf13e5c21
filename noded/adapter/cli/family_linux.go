package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of every process below it whose own parent ends. So whatever a command starts stays
// below its keeper, however often it forks and whatever session it makes, and the keeper has no child left only when
// nothing is left.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// childAttributes: a process group of its own, and an end when the keeper is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// family is all processes below this one.
type family struct{ leader int }

// signal sends s to each.
func (f family) signal(s syscall.Signal) {
	for _, pid := range below(os.Getpid()) {
		_ = syscall.Kill(pid, s) // it may have ended
	}
}

const (
	freezes   = 10                    // looks for processes that were forked meanwhile
	killPause = 20 * time.Millisecond // between rounds
)

// kill kills all, again and again until this process ends with the last of them. They are stopped first, so that none
// forks away from the look at who is there.
func (f family) kill() {
	for {
		seen := 0
		for range freezes {
			f.signal(syscall.SIGSTOP)
			n := len(below(os.Getpid()))
			if n == seen {
				break
			}
			seen = n
		}
		f.signal(syscall.SIGKILL)
		time.Sleep(killPause)
	}
}

// awaitGone has nothing to wait for: without a child there is nothing below.
func (f family) awaitGone() {}

// below lists the processes below one, by the parents that /proc tells.
func below(root int) []int {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if parent, ok := parentOf(e.Name()); ok {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	var all []int
	for next := children[root]; len(next) > 0; {
		all = append(all, next...)
		var after []int
		for _, pid := range next {
			after = append(after, children[pid]...)
		}
		next = after
	}
	return all
}

// parentOf reads a process's parent: the second field behind the name, which is in parentheses and may hold anything.
func parentOf(pid string) (parent int, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// sweep kills what is left of a run whose keeper was killed: its command was killed by the kernel, and whatever that had
// started is known by the mark in its environment. A process that has cleared its environment is not found.
func sweep(id string, _ int) {
	mark := []byte(markVar + "=" + id + "\x00")
	for rounds := 0; rounds < sweepRounds; rounds++ {
		found := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			if env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ")); err == nil && bytes.Contains(env, mark) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		if !found {
			return
		}
		time.Sleep(killPause)
	}
}

// sweepRounds bounds the sweep: one that the kernel does not let end for ten seconds is left to it.
const sweepRounds = 500
