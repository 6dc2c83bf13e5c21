//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pidsVar names a directory in which each process of a run leaves a file: its pid is the name, its parent the content.
const pidsVar = "TEST_PIDS"

// act is a command that does what its arguments say, one after another, and exits with 0 at their end.
func act(script []string) int {
	if len(script) > 0 && script[0] == "deaf" {
		perform("deaf", "") // before anybody knows that it is there
	}
	leavePID()
	for i := 0; i < len(script); i++ {
		verb, rest, _ := strings.Cut(script[i], " ")
		if code, exits := perform(verb, rest); exits {
			return code
		}
	}
	return 0
}

// leavePID leaves the file whole or not at all: who sees its name reads it at once.
func leavePID() {
	if dir := os.Getenv(pidsVar); dir != "" {
		path := filepath.Join(dir, strconv.Itoa(os.Getpid()))
		if os.WriteFile(path+".new", []byte(strconv.Itoa(os.Getppid())), 0o600) == nil {
			_ = os.Rename(path+".new", path)
		}
	}
}

func perform(verb, rest string) (code int, exits bool) {
	switch verb {
	case "say":
		fmt.Println(rest)
	case "raw": // with Go's escapes
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(rest, `"`, `\"`) + `"`)
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(text)
	case "err":
		fmt.Fprintln(os.Stderr, rest)
	case "play": // a recorded output
		b, err := os.ReadFile(rest)
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.Write(b)
	case "echo": // stdin
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "pwd":
		dir, _ := os.Getwd()
		fmt.Println(dir)
	case "lock": // a directory that can't be removed as it is
		_ = os.MkdirAll("a/b", 0o700)
		_ = os.WriteFile("a/b/f", []byte("x"), 0o600)
		_ = os.Chmod("a/b", 0)
		_ = os.Chmod("a", 0o500)
	case "exit":
		code, _ := strconv.Atoi(rest)
		return code, true
	case "kill9":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	case "close":
		_ = os.Stdout.Close()
	case "await": // so many processes
		for n, _ := strconv.Atoi(rest); len(processesIn(os.Getenv(pidsVar))) < n; {
			time.Sleep(time.Millisecond)
		}
	case "hang":
		time.Sleep(time.Hour)
	case "flood":
		for b := bytes.Repeat([]byte("x"), 64<<10); ; {
			if _, err := os.Stdout.Write(b); err != nil {
				return 3, true
			}
		}
	case "line": // that long, without an end
		n, _ := strconv.Atoi(rest)
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("y"), n))
	case "child": // with the rest as its script, separated by commas; by semicolons that of a child of it
		spawn(rest, nil)
	case "chain": // each process ends when it has started the next, in a session of its own
		signal.Ignore(syscall.SIGTERM)
		spawn("chain", &syscall.SysProcAttr{Setsid: true})
	case "daemon": // leaves session, group and environment
		spawn(rest, &syscall.SysProcAttr{Setsid: true})
	}
	return 0, false
}

func spawn(script string, attributes *syscall.SysProcAttr) {
	c := exec.Command(os.Args[0], append([]string{playAgent}, scriptOf(script)...)...)
	c.SysProcAttr = attributes
	if attributes != nil {
		c.Env = []string{pidsVar + "=" + os.Getenv(pidsVar), noRaceSleep}
	} else {
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
	}
	if err := c.Start(); err != nil {
		panic(err)
	}
}

func scriptOf(script string) []string {
	parts := strings.Split(script, ",")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], ";", ",")
	}
	return parts
}
