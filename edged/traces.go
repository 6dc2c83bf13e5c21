package edged

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"iop/configs"
	"iop/edged/openai"
	"iop/fsm"
	"iop/proto/spans"
)

// stopTraces bounds how long the last spans may take to reach their collector at a stop.
const stopTraces = 3 * time.Second

// newTracer builds what records requests; nil if nothing is to be recorded.
func newTracer(c *configs.Self, version string, log *slog.Logger) (*spans.Tracer, error) {
	t := &c.Traces
	if t.Endpoint == "" {
		return nil, nil
	}
	tracer, err := spans.New(spans.Options{
		Endpoint: t.Endpoint, Protocol: t.Protocol, Headers: t.RevealHeaders(), CA: t.CA,
		Ratio: t.SampleRatio, AskedPerSecond: t.ClientSampledPerSecond,
		Service: cmp.Or(t.ServiceName, "iop-edge"), Instance: c.ID, Version: version, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("edge.traces: %w", err)
	}
	return tracer, nil
}

// closeTracer exports what is left of a life, as far as its collector takes it.
func (d *Daemon) closeTracer() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTraces)
	defer cancel()
	if err := d.tracer.Close(ctx); err != nil {
		d.log.Warn("the last spans were not exported", "error", err)
	}
	if n := d.tracer.Counts(); n != (spans.Counts{}) {
		d.log.Debug("traces", "exported", n.Exported, "dropped", n.Dropped, "failed", n.Failed)
	}
}

// place tells of a request that is recorded where it stands.
func (d *Daemon) place(id fsm.RequestID) (p openai.Place) {
	var candidates []fsm.CandidateView
	d.store.View(func(m *fsm.Machine) {
		if r, ok := m.Request(id); ok {
			p = openai.Place{EnqueuedIndex: r.EnqueuedIndex, GrantedIndex: r.GrantedIndex, Position: r.Position}
			candidates = r.Candidates
		}
	})
	var why []string
	for _, c := range candidates {
		if !slices.Contains(why, c.Reason) && c.Reason != "" {
			why = append(why, c.Reason)
		}
	}
	p.Why = strings.Join(why, " ")
	return p
}
