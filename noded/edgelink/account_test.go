package edgelink

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"iop/proto/nodepb"
)

// What the machine fenced while its link lives takes nothing new; what runs goes on, and is reported over other links only.
func TestEndedGenerationIsReportedWhileItsLinkLives(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	open(t, r, 2)
	r.start(1, 1, 11, func() { t.Error("it is stopped") })
	r.fenced(1, false)
	if r.start(1, 2, 12, func() {}) {
		t.Error("a dispatch is taken on a link that has ended")
	}
	if got := r.reports(1); got != nil {
		t.Error("told over the link that has ended:", got)
	}
	want := []*nodepb.LinkReport{{Generation: 1, Running: []uint64{11}}}
	for range 2 * emptyReports {
		if d := cmp.Diff(want, r.reports(2), protocmp.Transform()); d != "" {
			t.Error(d)
		}
	}
	r.end(1, 1, done())
	for range emptyReports {
		if d := cmp.Diff([]*nodepb.LinkReport{{Generation: 1}}, r.reports(2), protocmp.Transform()); d != "" {
			t.Error(d)
		}
	}
	if got := r.reports(2); len(got) != 0 {
		t.Error("told for ever:", got)
	}
	r.lost(1)
	if r.reports(2); r.generations[1] != nil {
		t.Error("kept for ever")
	}
}

// A registration with one edge is no word on the links of another: those that are gone are still to be reported.
func TestRegistrationIsNoWordOnOtherEdges(t *testing.T) {
	r := NewRuns()
	for gen, edge := range map[uint64]string{1: "e1", 2: "e2", 3: "e3"} {
		if err := r.open("cluster", edge, gen); err != nil {
			t.Fatal(err)
		}
	}
	r.lost(1)
	r.lost(2)
	_, empty := r.left()
	r.forget("e2", empty)
	if d := cmp.Diff([]*nodepb.LinkReport{{Generation: 1}}, r.reports(3), protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

// S3: what the machine does not count is ended, though its link looks alive; what was not named is left alone.
func TestSettleEndsUncountedRunsOfLivingLinks(t *testing.T) {
	r := NewRuns()
	open(t, r, 1)
	stopped := make(chan uint64, 9)
	r.start(1, 1, 11, func() { stopped <- 11 })
	r.start(1, 2, 12, func() { stopped <- 12 })
	named, _ := r.left()
	r.start(1, 3, 13, func() { stopped <- 13 })
	settled := make(chan error, 1)
	go func() { settled <- r.settle(t.Context(), named, []uint64{12}) }()
	if got := <-stopped; got != 11 {
		t.Error("stopped", got)
	}
	select {
	case err := <-settled:
		t.Error("it does not wait:", err)
	default:
	}
	r.end(1, 1, done())
	if err := <-settled; err != nil || len(stopped) != 0 {
		t.Error(err, len(stopped))
	}
}
