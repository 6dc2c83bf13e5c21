//go:build !windows

package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"iop/cli/top/terminal"
	"iop/edged/adminapi"
)

// TestLost: a feed that breaks is said plainly, numbers stand still, nothing is changed, and it goes on by itself.
func TestLost(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame())
	r.Keys("2")
	r.Await("1m05s", "live")
	r.broken <- errGone
	r.Await("NOT CONNECTED", "Not connected for 0s. All numbers here are OLD: from 12:00:00. Trying again.", "connection refused")
	r.clock.move(42 * time.Second)
	golden(t, "lost", r.Await("Not connected for 42s", "1m05s"))
	r.Keys("x")
	r.Await("nothing is changed from here")
	r.Keys("p", "p") // pausing keeps it so
	r.Await("NOT CONNECTED")
	f := busyFrame()
	f.Edge, f.Leader, f.AtMS, f.Role = "edge-2", "edge-2", f.AtMS+43_000, "leader"
	r.whole(f)
	r.Await("live", "iop edge-2 (leader, term 3)", "Connected again, to edge edge-2.", "1m48s")
	// A gap is mended by a new call, without a word.
	r.frames <- &adminapi.Frame{Seq: r.seq + 7}
	r.whole(busyFrame())
	r.Await("live", "iop edge-1 (leader, term 3)")
	r.clock.move(time.Minute)
	r.Await("NO NEWS FOR 1m00s")
	f = busyFrame()
	f.Leader = ""
	r.whole(f)
	r.Await("NO LEADER", "no leader: nothing is admitted")
}

// TestPause: what is seen stands still while the feed goes on, and catches up.
func TestPause(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame())
	r.Keys("2")
	r.Await("1m05s", "live")
	r.Keys("p")
	r.Await("PAUSED")
	r.clock.move(10 * time.Second)
	f := busyFrame()
	f.AppliedIndex = 9999
	r.whole(f)
	r.Keys("x")
	if s := r.Await("what is shown is old", "1m05s"); strings.Contains(s, "9999") {
		t.Errorf("a paused picture moved:\n%s", s)
	}
	r.Keys("p")
	r.Await("live", "9999")
}

// TestNoFeed: without a first frame the terminal is not touched, and the error is that of the edge.
func TestNoFeed(t *testing.T) {
	t.Parallel()
	s := terminal.Open(t, 80, 24)
	refused := &adminapi.Error{Code: "no_live", Message: "too old", Cure: "upgrade"}
	err := Run(t.Context(), Options{In: s.TTY, Out: s.TTY, Live: func(context.Context, func(*adminapi.Frame) error) error { return refused }})
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	if got := s.Written(); got != "" {
		t.Errorf("written to the terminal: %q", got)
	}
}

// TestEnd: however it ends, the terminal has its own modes and screen again, and ctx ends it too.
func TestEnd(t *testing.T) {
	for name, end := range map[string]func(*running){
		"q": func(r *running) { r.Keys("q") }, "Ctrl-C": func(r *running) { r.Keys(terminal.KeyCtrlC) }, "context": func(r *running) { r.stop() },
		"Ctrl-C in a question": func(r *running) {
			r.Keys("d")
			r.Await("y: yes")
			r.Keys(terminal.KeyCtrlC)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, 80, 24, busyFrame())
			r.Await("live")
			if !r.Alternate() {
				t.Error("not on the other screen")
			}
			end(r)
			if err := r.ended(); err != nil {
				t.Errorf("error %v", err)
			}
			r.Restored()
		})
	}
}
