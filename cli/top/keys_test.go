//go:build !windows

package top

import (
	"errors"
	"strings"
	"testing"

	"iop/cli/top/terminal"
	"iop/edged/adminapi"
)

// order gives which of the words comes when on the screen.
func order(screen string, words ...string) string {
	var found []string
	for line := range strings.Lines(screen) {
		for _, w := range words {
			if f := strings.Fields(strings.TrimPrefix(line, ">")); len(f) > 1 && (f[0] == w || f[1] == w) {
				found = append(found, w)
			}
		}
	}
	return strings.Join(found, " ")
}

// TestOrder: s goes through the columns, r turns the order, the row at the cursor stays at it.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame())
	r.Await("wide")
	r.Keys(terminal.KeyDown, terminal.KeyDown) // mac
	r.Await("> mac")
	all := []string{"gpu-1", "gpu-2", "mac", "spare", "wide"}
	for _, c := range []struct{ key, title, want string }{
		{"s", "PROVIDER▲", "gpu-1 gpu-2 mac spare wide"},
		{"s", "NODE▲", "mac gpu-1 gpu-2 wide spare"},
		{"s", "STATUS▲", "wide mac gpu-2 gpu-1 spare"},
		{"s", "IN FLIGHT▲", "mac spare gpu-2 gpu-1 wide"},
		{"r", "IN FLIGHT▼", "wide gpu-1 gpu-2 mac spare"},
		{"S", "STATUS▲", "wide mac gpu-2 gpu-1 spare"},
	} {
		r.Keys(c.key)
		if got := order(r.Await(c.title, "> mac"), all...); got != c.want {
			t.Errorf("%s: %s, want %s", c.title, got, c.want)
		}
	}
}

// TestFilter: the list follows what is typed; all words must be there; Esc brings all rows back.
func TestFilter(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame())
	r.Await("wide")
	r.Keys("2", "/")
	r.Await("Filter: _")
	r.Keys("ORNITH:35 waiting q")
	r.AwaitThat("two rows", func(s string) bool { return strings.Contains(s, "Queue 2 of 4") && !strings.Contains(s, "req-b2") })
	r.Keys("\x7f", "zzz")
	r.Await("No row has all the words")
	r.Keys("\x7f\x7f\x7f", terminal.KeyEnter)
	r.Await("filter: ORNITH:35 waiting", "Queue 2 of 4", "? help")
	r.Keys(terminal.KeyEsc)
	r.Await("req-b2", "[2 Queue 4]")
	r.Keys("/", "x", "y") // both are keys of the list
	r.Await("Filter: xy_", "Queue 0 of 4")
	r.Keys("\x1b[200~d\nq\x1b[201~") // pasted
	r.Await("Filter: xyd q_")
	r.Keys(terminal.KeyEsc)
	r.Await("[2 Queue 4]")
	r.Keys("/", strings.Repeat("w", 90))
	r.Await("Filter: wwww")
	if got := r.called(); got != "" {
		t.Errorf("typing in the filter did: %s", got)
	}
}

// TestDrain asks, does nothing on Esc or another key, and drains what was asked about on y.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame())
	r.Await("wide")
	r.Keys("d")
	r.Await("Drain provider gpu-1? It gets no new requests; the 4 that run go on", "y: yes")
	r.Keys("d", terminal.KeyEnter, "x", terminal.KeyDown, terminal.KeyEsc)
	r.Await("Nothing was changed.", "> gpu-1")
	if got := r.called(); got != "" {
		t.Errorf("without a yes it did: %s", got)
	}
	r.Keys("d")
	r.Await("Drain provider gpu-1?")
	// What the cursor is at goes while the question stands: it is still about gpu-1.
	r.frames <- &adminapi.Frame{
		Seq: r.seq + 1, AtMS: busyFrame().AtMS, Edge: "edge-1", Actions: adminapi.ActionsAllowed, Leader: "edge-1", ProvidersGone: []string{"gpu-1"},
	}
	r.AwaitThat("gpu-1 gone", func(s string) bool { return strings.Contains(s, "1 Providers 4") })
	r.Keys("y")
	r.Await("Provider gpu-1 gets no new requests.")
	r.Keys("g", "d") // gpu-2 drains
	r.Await("Let provider gpu-2 take requests again?")
	r.Keys("y")
	r.Await("Provider gpu-2 takes requests again.")
	r.Keys("D")
	r.Await("Drain node rack-a? Its 1 provider gets no new requests; the 1 that runs")
	r.Keys("y")
	r.Await("Node rack-a gets no new requests.")
	if got, want := r.called(), "drain gpu-1 on, drain gpu-2 off, drain rack-a on"; got != want {
		t.Errorf("done: %s, want %s", got, want)
	}
}

// TestCancel: the question names the request and what its client gets; a refusal is shown with its cure.
func TestCancel(t *testing.T) {
	t.Parallel()
	r := start(t, 80, 24, busyFrame())
	r.Await("wide")
	r.Keys("x")
	r.Await("What can be canceled is in the queue: key 2.")
	r.Keys("2", terminal.KeyDown, "x")
	r.Await("Take request req-b2 (model ornith-fast) out of the queue?", "canceled_by_operator")
	r.Keys("y")
	r.Await("Request req-b2 has left the queue.")
	r.change(func() {
		r.deny = &adminapi.Error{Code: "not_waiting", Message: "request req-b3 runs", Cure: "leave it"}
	})
	r.Keys(terminal.KeyDown, "x")
	r.Await("Take request req-b3")
	r.Keys("y")
	r.Await("Not done: request req-b3 runs; cure: leave it")
	r.change(func() { r.deny = errors.New("the story is lost") })
	r.Keys(terminal.KeyEnter)
	r.Await("request req-b3", "the story is lost")
	if got, want := r.called(), "cancel req-b2, cancel req-b3, explain req-b3"; got != want {
		t.Errorf("done: %s, want %s", got, want)
	}
}

// TestReadOnly: a viewer that may not change anything is told why, and nothing is asked of the edge.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for actions, why := range map[string]string{
		adminapi.ActionsReadOnly:    "This token may only look",
		adminapi.ActionsTokenNeeded: "The edge wants the admin token",
	} {
		f := busyFrame()
		f.Actions = actions
		r := start(t, 160, 24, f)
		r.Await("wide")
		r.Keys("d")
		r.Await(why)
		r.Keys(terminal.KeyEsc)
		r.AwaitThat("no notice", func(s string) bool { return !strings.Contains(s, why) })
		r.Keys("2", "x")
		r.Await(why)
		r.Keys("y")
		r.Keys("?")
		r.Await("any key: back")
		if got := r.called(); got != "" {
			t.Errorf("%s: %s", actions, got)
		}
	}
}
