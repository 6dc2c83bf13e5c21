package noded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"iop/noded/adapter"
	"iop/proto/nodepb"
)

// rhythm is how backends are looked after.
type rhythm struct {
	refusals     int32         // refused connections in a row that degrade a provider
	failures     int32         // failures at once in a row that do; of one that has just come back, one is enough
	failedWithin time.Duration // what counts as at once
	pauseMin     time.Duration // how long a provider that fails at once is left alone: doubled up to pauseMax, jittered by half
	pauseMax     time.Duration
	failedChecks int           // failed health checks in a row that do; before the first success one is enough
	probeMin     time.Duration // between probes of a degraded provider: doubled up to probeMax, jittered by half
	probeMax     time.Duration
	probeTimeout time.Duration
}

func defaultRhythm() rhythm {
	return rhythm{
		refusals: 3, failures: 5, failedWithin: time.Second, pauseMin: time.Second, pauseMax: 30 * time.Second,
		failedChecks: 2, probeMin: 250 * time.Millisecond, probeMax: 5 * time.Second, probeTimeout: 5 * time.Second,
	}
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
	kind     string // the provider's type
	station  *station
	check    *nodepb.HealthCheck // nil: only runs tell
	rhythm   rhythm

	refused atomic.Int32 // connections, in a row
	failed  atomic.Int32 // runs that failed at once, with none that went well in between
	trial   atomic.Bool  // it failed at once, came back, and no run has gone well since
	alarm   chan alarm   // one that waits says enough
	glance  glance
}

// alarm is what runs have met.
type alarm struct {
	cause   string
	failing bool // it takes connections, and every run fails at once
}

func newWatch(c *nodepb.ProviderConfig, s *station, r rhythm) *watch {
	return &watch{provider: c.GetId(), kind: c.GetType(), station: s, check: c.GetHealthCheck(), rhythm: r, alarm: make(chan alarm, 1)}
}

// same tells whether this watch does what a provider's configuration asks for.
func (w *watch) same(c *nodepb.ProviderConfig, s *station) bool {
	return w.station == s && w.kind == c.GetType() && proto.Equal(w.check, c.GetHealthCheck())
}

// observe takes the end of a run. It never blocks.
func (w *watch) observe(e ended) {
	if e.end.Dispatched == adapter.DispatchedYes || e.end.Code == adapter.CodeBusy {
		w.refused.Store(0)
	}
	switch {
	case e.well():
		w.failed.Store(0)
		w.trial.Store(false)
	case e.end.Code == adapter.CodeConnectFailed:
		if w.refused.Add(1) >= w.rhythm.refusals {
			w.raise(alarm{cause: e.end.Message})
		}
	case e.broken() && e.took < w.rhythm.failedWithin:
		if n := w.failed.Add(1); n >= w.rhythm.failures || w.trial.Load() {
			w.raise(alarm{cause: fmt.Sprintf("fails at once, %d times in a row: %s", n, e), failing: true})
		}
	}
}

func (w *watch) raise(a alarm) {
	select {
	case w.alarm <- a:
	default:
	}
}

// run watches until ctx ends and reports each change. It returns whether the provider was degraded at last.
func (w *watch) run(ctx context.Context, report func(condition)) (degraded bool) {
	v := verdict{watch: w, wait: w.rhythm.probeMin, pause: w.rhythm.pauseMin, next: time.NewTimer(0)}
	defer v.next.Stop()
	if _, broken := w.station.Adapter.(brokenAdapter); w.check == nil && !broken {
		v.next.Stop()
	}
	for {
		was := v.degraded
		select {
		case <-ctx.Done():
			return v.degraded
		case a := <-w.alarm:
			v.alarmed(a)
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

// probe asks the backend: its health check's path, or whether it takes a connection. Its time is bounded by its own, so
// that one which hangs is found out, and delays no other.
func (w *watch) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.rhythm.probeTimeout)
	defer cancel()
	return w.station.Probe(ctx, w.path())
}

// path is where the health check asks: the configured one, or the one of the provider's type. Without a health check it
// is none.
func (w *watch) path() string {
	if w.check == nil || w.check.GetPath() != "" {
		return w.check.GetPath()
	}
	return adapter.KindOf(w.kind).Health
}

// verdict is what a watch holds of its provider.
type verdict struct {
	watch    *watch
	degraded bool
	cause    string
	failures int  // probes in a row
	known    bool // has been well once
	wait     time.Duration
	failing  bool          // it is degraded because it fails at once
	pause    time.Duration // the next one
	next     *time.Timer   // the next probe
}

// alarmed: connections are refused, or everything fails at once. Whether the latter has passed only a run can tell: the
// provider is left alone for a while, and if it takes a connection then (or its health check is well), the next run is
// its trial.
func (v *verdict) alarmed(a alarm) {
	if v.degraded {
		return
	}
	v.degraded, v.cause, v.failing = true, a.cause, a.failing
	if !a.failing {
		v.again()
		return
	}
	r := v.watch.rhythm
	if !v.watch.trial.Load() {
		v.pause = r.pauseMin
	}
	v.next.Reset(jittered(v.pause))
	v.pause = min(2*v.pause, r.pauseMax)
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
	if v.failing {
		v.watch.trial.Store(true)
	}
	v.degraded, v.cause, v.failures, v.known, v.failing, v.wait = false, "", 0, true, false, v.watch.rhythm.probeMin
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
	v.next.Reset(jittered(v.wait))
	v.wait = min(2*v.wait, v.watch.rhythm.probeMax)
}

// jittered is d, half less to half more, so that the nodes of a cluster don't ask all at once.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// interval is the time between health checks; absent is 5 s.
func (w *watch) interval() time.Duration {
	if ms := w.check.GetIntervalMs(); ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return 5 * time.Second
}
