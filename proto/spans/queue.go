package spans

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// batchMax is how many spans go out at once.
	batchMax = 512
	// complainEach is how often the log tells that spans are lost.
	complainEach = time.Minute
)

// queue is what spans wait in, and the one goroutine that takes them to the collector. It is the SDK's SpanProcessor; its own
// does not tell how many it drops.
type queue struct {
	exporter sdk.SpanExporter
	waiting  chan sdk.ReadOnlySpan
	every    time.Duration
	timeout  time.Duration
	log      *slog.Logger

	closed  atomic.Bool
	quit    chan struct{} // closed by Shutdown
	once    sync.Once
	over    chan struct{}      // closed when the goroutine has ended
	cutOff  context.CancelFunc // ends the export that goes on, and all later ones at once
	flushes chan chan struct{}

	exported, dropped, failed atomic.Uint64

	told       time.Time // when the log was told last; of the goroutine
	lostBefore uint64    // dropped and failed then
}

func newQueue(e sdk.SpanExporter, o *Options) *queue {
	q := &queue{
		exporter: e, waiting: make(chan sdk.ReadOnlySpan, o.QueueMax), every: o.Every, timeout: o.Timeout, log: o.Logger,
		quit: make(chan struct{}), over: make(chan struct{}), flushes: make(chan chan struct{}),
	}
	ctx, cutOff := context.WithCancel(context.Background())
	q.cutOff = cutOff
	// What the SDK has to say beside errors that it returns (a collector that refused some spans) would go to stderr.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Debug("traces", "error", err) }))
	go q.run(ctx)
	return q
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd takes a span, or counts it as dropped.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.closed.Load() {
		q.dropped.Add(1)
		return
	}
	select {
	case q.waiting <- s:
	default:
		q.dropped.Add(1)
	}
}

// run exports until Shutdown, which waits for it, and then what is left.
func (q *queue) run(ctx context.Context) {
	defer close(q.over)
	batch := make([]sdk.ReadOnlySpan, 0, batchMax)
	tick := time.NewTicker(q.every)
	defer tick.Stop()
	for {
		select {
		case s := <-q.waiting:
			if batch = append(batch, s); len(batch) == batchMax {
				batch = q.export(ctx, batch)
			}
		case <-tick.C:
			batch = q.export(ctx, batch)
		case done := <-q.flushes:
			batch = q.drain(ctx, batch)
			close(done)
		case <-q.quit:
			q.drain(ctx, batch)
			return
		}
	}
}

// drain exports what is there.
func (q *queue) drain(ctx context.Context, batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	for {
		select {
		case s := <-q.waiting:
			if batch = append(batch, s); len(batch) == batchMax {
				batch = q.export(ctx, batch)
			}
		default:
			return q.export(ctx, batch)
		}
	}
}

// export sends a batch, once, and returns it empty. After the bound of Shutdown everything fails at once.
func (q *queue) export(ctx context.Context, batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	if len(batch) == 0 {
		q.complain(nil)
		return batch
	}
	timed, cancel := context.WithTimeout(ctx, q.timeout)
	err := q.exporter.ExportSpans(timed, batch)
	cancel()
	if err != nil {
		q.failed.Add(uint64(len(batch)))
	} else {
		q.exported.Add(uint64(len(batch)))
	}
	q.complain(err)
	clear(batch) // they are not to be held on to
	return batch[:0]
}

// complain tells the log that spans were lost, now and then.
func (q *queue) complain(err error) {
	lost := q.dropped.Load() + q.failed.Load()
	if lost == q.lostBefore || !q.told.IsZero() && time.Since(q.told) < complainEach {
		return
	}
	q.log.Warn("traces: spans are lost; requests are not affected", "lost", lost-q.lostBefore,
		"dropped", q.dropped.Load(), "failed", q.failed.Load(), "exported", q.exported.Load(), "error", err)
	q.told, q.lostBefore = time.Now(), lost
}

// ForceFlush exports what has ended so far.
func (q *queue) ForceFlush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case q.flushes <- done:
	case <-q.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown exports what there is, as long as ctx says; what is left then is counted as failed.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { q.closed.Store(true); close(q.quit) })
	stop := context.AfterFunc(ctx, q.cutOff)
	<-q.over // after the bound all that is left fails at once
	stop()
	q.cutOff()
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return q.exporter.Shutdown(ended)
}
