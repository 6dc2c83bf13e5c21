//go:build !windows

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// start starts the shell. All that it starts is in one process group, which ends with the test.
func (s *guideShell) start() {
	s.t.Helper()
	in, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	r, out, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	home := filepath.Join(s.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	c := exec.Command("sh")
	c.Dir = s.dir
	c.Env = []string{
		"HOME=" + home, "TMPDIR=" + home, "USER=" + os.Getenv("USER"), "NO_COLOR=1",
		"PATH=" + strings.Join([]string{filepath.Join(s.dir, "stand-in"), filepath.Dir(program(s.t, "iopctl")), os.Getenv("PATH")}, ":"),
		"IOP_EDGE=" + s.there.Replace("127.0.0.1:9080"),
	}
	c.Stdin, c.Stdout, c.Stderr = in, out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	_, _ = in.Close(), out.Close()
	s.in, s.out = w, make(chan string, 1<<16)
	var reading sync.WaitGroup
	reading.Add(1)
	go func() {
		defer reading.Done()
		defer close(s.out)
		for b := bufio.NewScanner(r); b.Scan(); {
			s.out <- b.Text()
		}
	}()
	s.t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_, _ = w.Close(), c.Wait()
		reading.Wait()
		_ = r.Close()
		if s.t.Failed() {
			s.logs()
		}
	})
}

// typed types lines and gives what they print, with the guide's ports, and the exit code of the last.
func (s *guideShell) typed(lines string) (printed, code string) {
	s.t.Helper()
	s.n++
	file := fmt.Sprintf("block-%d.sh", s.n)
	s.write(filepath.Join("home", file), s.there.Replace(lines))
	mark := fmt.Sprintf("@@%d", s.n)
	if _, err := fmt.Fprintf(s.in, ". ./home/%s </dev/null\nguide_code=$?; echo; echo %s $guide_code\n", file, strings.Replace(mark, "@@", "'@@'", 1)); err != nil {
		s.t.Fatal(err)
	}
	return s.until(mark)
}

func (s *guideShell) until(mark string) (printed, code string) {
	s.t.Helper()
	var b strings.Builder
	for end := time.After(2 * patience); ; {
		select {
		case line, more := <-s.out:
			if !more {
				s.t.Fatalf("the shell ended:\n%s", b.String())
			}
			if c, ok := strings.CutPrefix(line, mark+" "); ok {
				return s.back.Replace(strings.TrimSpace(b.String())) + "\n", c
			}
			if line != "Killed" && line != "Terminated" { // what some shells say of a job
				b.WriteString(line + "\n")
			}
		case <-end:
			s.t.Fatalf("a block of the tutorial does not end; so far:\n%s", b.String())
		}
	}
}

// logs shows the ends of the daemons' logs.
func (s *guideShell) logs() {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil {
			s.t.Logf("%s:\n%s", filepath.Base(f), tail(string(text), 15))
		}
	}
}
