package edgelink

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"iop/proto/nodepb"
)

func done() nodepb.Outcome { return nodepb.Outcome{Dispatched: "yes"} }

func open(t *testing.T, r *Runs, gen uint64) {
	t.Helper()
	if err := r.open("cluster", "e1", gen); err != nil {
		t.Fatal(err)
	}
}

func TestCancelOfARunningRunIsToldAtItsEnd(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	stopped := false
	if !r.start(1, 5, 50, func() { stopped = true }) {
		t.Fatal("refused")
	}
	if e := r.cancel(1, 5); e != nil || !stopped {
		t.Fatal(e, stopped)
	}
	if !r.end(1, 5, done()) {
		t.Error("the end of a canceled run is not told")
	}
	if e := r.cancel(1, 5); e != nil {
		t.Error("it is told twice:", e)
	}
	if r.tell(1, 5) {
		t.Error("it is told twice")
	}
}

func TestCancelThatCrossesTheEnd(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	r.start(1, 5, 50, func() { t.Error("stopped") })
	if r.end(1, 5, done()) {
		t.Error("nobody canceled it")
	}
	want := &nodepb.RunEnded{Run: 5, Lease: 50, Dispatched: "yes"}
	if d := cmp.Diff(want, r.cancel(1, 5), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if r.cancel(1, 5) != nil {
		t.Error("it is told twice")
	}
}

// A cancel that races the start: the run that comes after its cancel must not begin, and its end is told once.
func TestCancelBeforeTheStart(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	e := r.cancel(1, 7)
	if !e.GetUnseen() || e.GetDispatched() != "no" {
		t.Fatal(e)
	}
	if r.start(1, 7, 70, func() {}) {
		t.Error("it begins although the edge counts it as ended")
	}
	if !r.start(1, 8, 80, func() {}) {
		t.Error("another one is refused")
	}
}

// What is forgotten is never promised not to have run, and never begins.
func TestForgottenRuns(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	r.cancel(1, 2)
	r.start(1, 1, 10, func() {})
	r.end(1, 1, done())
	for n := uint64(3); n < pastMax+10; n++ {
		r.start(1, n, n, func() {})
		r.end(1, n, done())
	}
	if e := r.cancel(1, 1); e.GetDispatched() != "unknown" || e.GetUnseen() {
		t.Error(e)
	}
	if r.start(1, 2, 20, func() {}) {
		t.Error("a canceled run begins after its cancel was forgotten")
	}
	if g := r.generations[1]; len(g.unseen) != 0 {
		t.Error("cancels pile up:", g.unseen)
	}
}

func TestLostGenerationIsReportedUntilEmpty(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	open(t, r, 2)
	stops := 0
	r.start(1, 1, 11, func() { stops++ })
	r.start(1, 2, 12, func() { stops++ })
	r.start(2, 1, 21, func() { t.Error("another link's run is stopped") })
	news := r.news()
	r.lost(1)
	<-news
	if stops != 2 || r.start(1, 3, 13, func() {}) {
		t.Error("stops", stops)
	}
	if d := cmp.Diff([]*nodepb.LinkReport{{Generation: 1, Running: []uint64{11, 12}}}, r.reports(2), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if leases, empty := r.left(); len(leases) != 3 || len(empty) != 0 {
		t.Error(leases, empty)
	}
	news = r.news()
	r.end(1, 1, done())
	<-news
	r.end(1, 2, done())
	for range emptyReports {
		if d := cmp.Diff([]*nodepb.LinkReport{{Generation: 1}}, r.reports(2), protocmp.Transform()); d != "" {
			t.Error(d)
		}
	}
	if got := r.reports(2); len(got) != 0 {
		t.Error(got)
	}
}

func TestSettleWaitsForWhatIsNotCounted(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	r.start(1, 1, 11, func() {})
	r.start(1, 2, 12, func() {})
	r.lost(1)
	settled := make(chan error, 1)
	go func() { settled <- r.settle(context.Background(), []uint64{11, 12}, []uint64{12}) }()
	r.end(1, 1, done())
	if err := <-settled; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := r.settle(ctx, []uint64{11, 12}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestTwoClustersGiveTheSameGeneration: generations are numbers of one cluster. A node that named edges of two clusters
// forgot the runs of the one when the other gave it the same number, and crashed at their end.
func TestTwoClustersGiveTheSameGeneration(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	r.start(1, 5, 50, func() {})
	if err := r.open("another", "e1", 1); !errors.Is(err, errTwoClusters) {
		t.Error(err)
	}
	if err := r.open("cluster", "e1", 1); !errors.Is(err, errGeneration) {
		t.Error(err)
	}
	r.lost(1)
	if err := r.open("another", "e1", 1); !errors.Is(err, errOldCluster) {
		t.Error(err)
	}
	r.end(1, 5, done())
	if err := r.open("another", "e1", 1); err != nil {
		t.Error(err)
	}
	if leases, empty := r.left(); len(leases)+len(empty) != 0 {
		t.Error("the former cluster's generations are still told:", leases, empty)
	}
}
