// Package terminal is a terminal for tests: a pseudo-terminal whose other end draws what is written to it, answers what it is
// asked, and lets the test see the screen and type. Tests of cli/top and of iopctl as a process (e2e) use it; nothing else does.
package terminal
