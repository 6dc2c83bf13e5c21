package admission_test

import (
	"context"
	"testing"
	"time"

	"iop/edged/admission"
	"iop/fsm"
)

// yes grants everything at once, from within Propose.
type yes struct{ lease fsm.LeaseID }

func (y *yes) Propose(c fsm.Command, to admission.Receiver) {
	switch c := c.(type) {
	case *fsm.Admit:
		y.lease++
		to.Receive(fsm.Outcome{Code: fsm.Granted, Grant: fsm.Grant{Lease: y.lease, Request: c.Request}}, nil)
	case *fsm.Release:
		to.Receive(fsm.Outcome{Code: fsm.Returned}, nil)
	}
}

type ran struct{}

func (ran) Queued(int) {}
func (ran) Dispatch(context.Context, fsm.Grant, time.Duration) (fsm.Reason, bool) {
	return fsm.ReasonDone, false
}

// BenchmarkRun is admission's own cost per request.
func BenchmarkRun(b *testing.B) {
	a := admission.New(admission.Options{})
	a.Attach(&yes{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Run(ctx, req("r"), ran{}); err != nil {
			b.Fatal(err)
		}
	}
	if a.Open() != 0 {
		b.Fatal("left open")
	}
}
