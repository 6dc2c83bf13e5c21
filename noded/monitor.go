package noded

import (
	"context"
	"log/slog"
	"sync"
)

// monitor runs the watches of the configuration in force.
type monitor struct {
	log    *slog.Logger
	report func(condition) // must not block
	change chan struct{}

	mu     sync.Mutex
	wanted map[string]*watch // by provider
}

func newMonitor(log *slog.Logger, report func(condition)) *monitor {
	return &monitor{log: log, report: report, change: make(chan struct{}, 1)}
}

// set names the watches that are to run from now on. It does not wait for them.
func (m *monitor) set(watches map[string]*watch) {
	m.mu.Lock()
	m.wanted = watches
	m.mu.Unlock()
	select {
	case m.change <- struct{}{}:
	default:
	}
}

// Run keeps the wanted watches running until ctx ends, and waits for all of them.
func (m *monitor) Run(ctx context.Context) {
	running := map[*watch]*watching{}
	defer func() {
		for _, w := range running {
			w.stop()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.change:
			m.adjust(ctx, running)
		}
	}
}

// adjust stops what is no longer wanted and starts what is new.
func (m *monitor) adjust(ctx context.Context, running map[*watch]*watching) {
	m.mu.Lock()
	wanted := m.wanted
	m.mu.Unlock()
	for w, r := range running {
		if wanted[w.provider] == w {
			continue
		}
		delete(running, w)
		if degraded := r.stop(); degraded {
			m.tell(condition{provider: w.provider}) // its successor begins without prejudice
		}
	}
	for _, w := range wanted {
		if running[w] == nil {
			running[w] = m.start(ctx, w)
		}
	}
}

func (m *monitor) start(ctx context.Context, w *watch) *watching {
	ctx, cancel := context.WithCancel(ctx)
	r := &watching{cancel: cancel, ended: make(chan bool, 1)}
	go func() { r.ended <- w.run(ctx, m.tell) }()
	return r
}

// tell logs and reports a change.
func (m *monitor) tell(c condition) {
	if c.degraded {
		m.log.Warn("provider degraded", "provider", c.provider, "cause", c.cause)
	} else {
		m.log.Info("provider healthy", "provider", c.provider)
	}
	m.report(c)
}

// watching is a watch that runs.
type watching struct {
	cancel context.CancelFunc
	ended  chan bool
}

// stop ends the watch, waits for it, and returns whether its provider was degraded.
func (w *watching) stop() bool {
	w.cancel()
	return <-w.ended
}
