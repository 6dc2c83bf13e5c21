package edgelink

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"iop/proto/nodepb"
)

func pendingLife(t *testing.T) *life {
	t.Helper()
	l, err := New(Options{Address: "x", NodeID: "n", Hands: idle{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return newLife(l, &nodepb.Accepted{Generation: 1})
}

// waiting starts a run that needs a revision; the channel is closed when it goes on.
func waiting(ctx context.Context, s *life, revision uint64) <-chan struct{} {
	on := make(chan struct{})
	go func() { defer close(on); s.await(ctx, &nodepb.Request{Revision: revision}) }()
	return on
}

func still(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
		t.Fatal(what + " went on")
	case <-time.After(5 * time.Millisecond): // it can't be seen that something does not happen; it would at once
	}
}

func TestRunWaitsForItsConfiguration(t *testing.T) {
	s := pendingLife(t)
	s.holds(3)
	within(t, "a run of an old configuration goes on", waiting(t.Context(), s, 2))
	within(t, "a run that needs none goes on", waiting(t.Context(), s, 0))
	four, six := waiting(t.Context(), s, 4), waiting(t.Context(), s, 6)
	still(t, "a run that needs 4", four)
	s.holds(5)
	within(t, "the configuration has come", four)
	still(t, "a run that needs 6", six)
	s.holds(4) // of an older push: nothing goes back
	still(t, "a run that needs 6", six)
	s.holds(6)
	within(t, "the configuration has come", six)
}

func TestRunThatWaitsEndsWithItsClientOrLink(t *testing.T) {
	s := pendingLife(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := waiting(ctx, s, 1)
	cancel()
	within(t, "the client has left", left)
	cut := waiting(t.Context(), s, 1)
	s.finish(nil)
	within(t, "the link is lost", cut)
}
