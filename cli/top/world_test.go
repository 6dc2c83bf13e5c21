//go:build !windows

package top

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/cli/top/terminal"
	"iop/edged/adminapi"
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
	*terminal.Screen
	*source
	t     *testing.T
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
		Screen: terminal.Open(t, width, height), t: t, source: newSource(), end: make(chan error, 1), stop: stop,
		clock: &clock{now: noon},
	}
	o := Options{
		Live: r.live, In: r.TTY, Out: r.TTY, Env: []string{"TERM=xterm-256color"}, Unicode: true, Color: true, Now: r.clock.read,
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
		case err := <-r.end:
			if err != nil {
				t.Errorf("the view ends with %v", err)
			}
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
		r.t.Fatalf("the view does not end:\n%s", r.Text())
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
