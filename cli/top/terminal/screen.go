//go:build !windows

package terminal

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// Keys that have no character.
const (
	KeyEsc       = "\x1b"
	KeyEnter     = "\r"
	KeyTab       = "\t"
	KeyDown      = "\x1b[B"
	KeyBackspace = "\x7f"
	KeyCtrlC     = "\x03"
)

// patience is how long the screen may take to show something. A test that passes never waits for it.
const patience = 30 * time.Second

// Screen is a terminal of a test.
type Screen struct {
	// TTY is the end that a program has as its input and output.
	TTY *os.File

	t     testing.TB
	pty   *os.File
	modes string // of the line, before anything ran on it
	wg    sync.WaitGroup

	mu  sync.Mutex
	em  *vt.Emulator    // read without the lock by reply, which the lock's holder may wait for
	raw strings.Builder // all that was written
}

// Open makes one; the test's end closes it.
func Open(t testing.TB, width, height int) *Screen {
	t.Helper()
	p, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &Screen{t: t, pty: p, TTY: tty, em: vt.NewEmulator(width, height)}
	s.modes = s.lineModes()
	s.Size(width, height)
	s.wg.Go(s.draw)
	s.wg.Go(s.reply)
	t.Cleanup(s.close)
	return s
}

// Size makes it another size.
func (s *Screen) Size(width, height int) {
	s.t.Helper()
	s.mu.Lock()
	s.em.Resize(width, height)
	s.mu.Unlock()
	if err := pty.Setsize(s.pty, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		s.t.Fatal(err)
	}
	// A program in this process does not have it as its own terminal, so the kernel does not tell it.
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Screen) draw() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.pty.Read(buf)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.raw.Write(buf[:n])
		_, _ = s.em.Write(buf[:n])
		s.mu.Unlock()
	}
}

// reply carries the emulator's answers to the program.
func (s *Screen) reply() {
	buf := make([]byte, 4096)
	for {
		n, err := s.em.Read(buf)
		if err != nil {
			return
		}
		if _, err := s.pty.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (s *Screen) close() {
	_ = s.TTY.Close()
	_ = s.pty.Close()
	if c, ok := s.em.InputPipe().(io.Closer); ok { // the emulator's own Close races with its Read
		_ = c.Close()
	}
	s.wg.Wait()
}

// Written is all that was ever written to it.
func (s *Screen) Written() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// Text is what is seen, without blanks at the ends of lines.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.em.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \r")
	}
	return strings.Join(lines, "\n")
}

// Alternate tells whether it shows its second screen, that of programs which take it as a whole.
func (s *Screen) Alternate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.em.IsAltScreen()
}

// Keys types. Esc and a key right after it may be taken as Alt and that key.
func (s *Screen) Keys(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		if _, err := s.pty.WriteString(k); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Await waits until the screen has all of the words, and returns it.
func (s *Screen) Await(words ...string) string {
	s.t.Helper()
	return s.AwaitThat(strings.Join(words, ", "), func(text string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})
}

// AwaitThat waits until something holds for the screen.
func (s *Screen) AwaitThat(what string, is func(text string) bool) string {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		text := s.Text()
		if is(text) {
			return text
		}
		if time.Now().After(end) {
			s.t.Fatalf("the screen never showed %s:\n%s", what, text)
		}
	}
}

// Restored wants the terminal as it was at first: its first screen, its cursor, its line, every mode that was set.
func (s *Screen) Restored() {
	s.t.Helper()
	s.AwaitThat("its first screen again", func(string) bool { return !s.Alternate() })
	if now := s.lineModes(); now != s.modes {
		s.t.Errorf("the modes of the line are %s, were %s", now, s.modes)
	}
	last := map[string]string{}
	for _, m := range regexp.MustCompile(`\x1b\[\?(\d+)([hl])`).FindAllStringSubmatch(s.Written(), -1) {
		last[m[1]] = m[2]
	}
	if len(last) == 0 {
		s.t.Error("no mode was ever set: this sees nothing")
	}
	for mode, state := range last {
		if on := mode == "25"; (state == "h") != on { // the cursor is shown at first; all else is off
			s.t.Errorf("mode %s is left as %s", mode, state)
		}
	}
}

func (s *Screen) lineModes() string {
	s.t.Helper()
	state, err := term.GetState(s.TTY.Fd())
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("%+v", *state)
}
