package noded

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"iop/noded/adapter"
	"iop/proto/nodepb"
)

// rhythm is how backends are looked after.
type rhythm struct {
	refusals     int32         // refused connections in a row that degrade a provider
	failedChecks int           // failed health checks in a row that do; before the first success one is enough
	probeMin     time.Duration // between probes of a degraded provider: doubled up to probeMax, jittered by half
	probeMax     time.Duration
	probeTimeout time.Duration
}

func defaultRhythm() rhythm {
	return rhythm{refusals: 3, failedChecks: 2, probeMin: 250 * time.Millisecond, probeMax: 5 * time.Second, probeTimeout: 5 * time.Second}
}

// condition is how a provider is.
type condition struct {
	provider string
	degraded bool
	cause    string
}

// watch looks after one provider: at what its runs meet, and with a health check also by asking. One goroutine runs
// it, so that a backend that hangs holds up nothing but its own watch.
type watch struct {
	provider string
	station  *station
	check    *nodepb.HealthCheck // nil: only runs tell
	rhythm   rhythm

	refused atomic.Int32 // in a row
	alarm   chan string  // cause; one that waits says enough
}

func newWatch(provider string, s *station, check *nodepb.HealthCheck, r rhythm) *watch {
	return &watch{provider: provider, station: s, check: check, rhythm: r, alarm: make(chan string, 1)}
}

// observe takes the end of a run. It never blocks.
func (w *watch) observe(end adapter.End) {
	switch {
	case end.Dispatched == adapter.DispatchedYes || end.Code == adapter.CodeBusy:
		w.refused.Store(0)
	case end.Code == adapter.CodeConnectFailed && w.refused.Add(1) >= w.rhythm.refusals:
		select {
		case w.alarm <- end.Message:
		default:
		}
	}
}

// run watches until ctx ends and reports each change. It returns whether the provider was degraded at last.
func (w *watch) run(ctx context.Context, report func(condition)) (degraded bool) {
	v := verdict{watch: w, wait: w.rhythm.probeMin, next: time.NewTimer(0)}
	defer v.next.Stop()
	if _, broken := w.station.Adapter.(brokenAdapter); w.check == nil && !broken {
		v.next.Stop()
	}
	for {
		was := v.degraded
		select {
		case <-ctx.Done():
			return v.degraded
		case cause := <-w.alarm:
			v.alarmed(cause)
		case <-v.next.C:
			err := w.probe(ctx)
			if ctx.Err() != nil {
				return v.degraded
			}
			v.probed(err)
		}
		if v.degraded != was {
			report(condition{provider: w.provider, degraded: v.degraded, cause: v.cause})
		}
	}
}

// probe asks the backend: its health check's path, or whether it takes a connection.
func (w *watch) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.rhythm.probeTimeout)
	defer cancel()
	return w.station.Probe(ctx, w.check.GetPath())
}

// verdict is what a watch holds of its provider.
type verdict struct {
	watch    *watch
	degraded bool
	cause    string
	failures int  // probes in a row
	known    bool // has been well once
	wait     time.Duration
	next     *time.Timer // the next probe
}

// alarmed: connections are refused.
func (v *verdict) alarmed(cause string) {
	if v.degraded {
		return
	}
	v.degraded, v.cause = true, cause
	v.again()
}

// probed takes a probe's result and sets when the next is due.
func (v *verdict) probed(err error) {
	if err == nil {
		v.well()
		return
	}
	v.failures++
	if !v.degraded && (v.failures >= v.watch.rhythm.failedChecks || !v.known) {
		v.degraded, v.cause = true, err.Error()
	}
	if v.degraded {
		v.again()
		return
	}
	v.next.Reset(v.watch.interval())
}

// well: the backend answers. What was heard of it before is out of date.
func (v *verdict) well() {
	v.degraded, v.cause, v.failures, v.known, v.wait = false, "", 0, true, v.watch.rhythm.probeMin
	v.watch.refused.Store(0)
	select {
	case <-v.watch.alarm:
	default:
	}
	if v.watch.check != nil {
		v.next.Reset(v.watch.interval())
	}
}

// again probes a degraded provider after a while, longer each time.
func (v *verdict) again() {
	v.next.Reset(v.wait/2 + rand.N(v.wait))
	v.wait = min(2*v.wait, v.watch.rhythm.probeMax)
}

// interval is the time between health checks; absent is 5 s.
func (w *watch) interval() time.Duration {
	if ms := w.check.GetIntervalMs(); ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return 5 * time.Second
}
