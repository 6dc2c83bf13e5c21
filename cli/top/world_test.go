//go:build !windows

package top

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"iop/edged/adminapi"
)

// screen is a terminal: a pseudo-terminal with an emulator that draws what is written to it and answers what it is asked.
type screen struct {
	t        *testing.T
	pty, tty *os.File
	em       *vt.SafeEmulator
	mu       sync.Mutex
	raw      strings.Builder // all that was written
	modes    string          // of the line, before anything was shown
	wg       sync.WaitGroup
}

func newScreen(t *testing.T, width, height int) *screen {
	t.Helper()
	p, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, pty: p, tty: tty, em: vt.NewSafeEmulator(width, height), modes: modes(t, tty)}
	s.size(width, height)
	s.wg.Go(s.draw)
	s.wg.Go(s.reply)
	t.Cleanup(s.close)
	return s
}

func (s *screen) size(width, height int) {
	s.t.Helper()
	s.em.Resize(width, height)
	if err := pty.Setsize(s.pty, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		s.t.Fatal(err)
	}
	// The terminal is not that of this process, so the kernel does not tell it.
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) draw() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.pty.Read(buf)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.raw.Write(buf[:n])
		s.mu.Unlock()
		_, _ = s.em.Write(buf[:n])
	}
}

// reply carries the emulator's answers to the program.
func (s *screen) reply() {
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

func (s *screen) close() {
	_ = s.tty.Close()
	_ = s.pty.Close()
	_ = s.em.Close()
	s.wg.Wait()
}

func (s *screen) written() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// text is what is seen, without blanks at the ends of lines.
func (s *screen) text() string {
	lines := strings.Split(s.em.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \r")
	}
	return strings.Join(lines, "\n")
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		if _, err := s.pty.WriteString(k); err != nil {
			s.t.Fatal(err)
		}
	}
}

// await waits until the screen has all of the words.
func (s *screen) await(words ...string) string {
	s.t.Helper()
	return s.awaitThat(strings.Join(words, ", "), func(text string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})
}

func (s *screen) awaitThat(what string, is func(string) bool) string {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		text := s.text()
		if is(text) {
			return text
		}
		if time.Now().After(end) {
			s.t.Fatalf("the screen never showed %s:\n%s", what, text)
		}
	}
}

const (
	keyEsc   = "\x1b"
	keyEnter = "\r"
	keyDown  = "\x1b[B"
	keyCtrlC = "\x03"
)

// source is an edge whose frames a test makes.
type source struct {
	mu     sync.Mutex
	calls  []string
	frames chan *adminapi.Frame
	broken chan error
	seq    uint64
	deny   error
}

func newSource() *source {
	return &source{frames: make(chan *adminapi.Frame), broken: make(chan error)}
}

func (s *source) live(ctx context.Context, fn func(*adminapi.Frame) error) error {
	for {
		select {
		case f := <-s.frames:
			if err := fn(f); err != nil {
				return err
			}
		case err := <-s.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *source) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, what)
	return s.deny
}

func (s *source) called() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.calls, ", ")
}

func (s *source) whole(f *adminapi.Frame) {
	s.seq++
	f.Seq, f.Whole = s.seq, true
	s.frames <- f
}

// running is a view on a screen.
type running struct {
	*screen
	*source
	clock *clock
	end   chan error
	stop  context.CancelFunc
}

// clock stands still until a test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// noon is when all tests are.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func start(t *testing.T, width, height int, first *adminapi.Frame, change ...func(*Options)) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{
		screen: newScreen(t, width, height), source: newSource(), end: make(chan error, 1), stop: stop,
		clock: &clock{now: noon},
	}
	o := Options{
		Live: r.live, In: r.tty, Out: r.tty, Env: []string{"TERM=xterm-256color"}, Unicode: true, Color: true, Now: r.clock.read,
		Explain: func(_ context.Context, kind Kind, id string) (string, error) {
			return "This is the story of " + string(kind) + " " + id + ".\nIt has two lines.\n", r.note("explain " + id)
		},
		Drain: func(_ context.Context, d adminapi.Drain) error {
			return r.note("drain " + d.Provider + d.Node + map[bool]string{true: " on", false: " off"}[d.On])
		},
		Cancel: func(_ context.Context, id string) error { return r.note("cancel " + id) },
	}
	for _, c := range change {
		c(&o)
	}
	go func() { r.end <- Run(ctx, o) }()
	r.whole(first)
	t.Cleanup(func() {
		stop()
		select {
		case <-r.end:
		case <-time.After(20 * time.Second):
			t.Error("the view does not end")
		}
	})
	return r
}

// ended waits until the view has ended.
func (r *running) ended() error {
	r.t.Helper()
	select {
	case err := <-r.end:
		r.end <- nil // for the cleanup
		return err
	case <-time.After(20 * time.Second):
		r.t.Fatalf("the view does not end:\n%s", r.text())
		return nil
	}
}

var errGone = errors.New("connection refused")

// change changes the source under its lock.
func (s *source) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
}
