package edged

import (
	"iop/edged/adminapi"
	"iop/edged/metrics"
	"iop/edged/pulse"
	"iop/fsm"
)

// reading is what the pulse is taken from, once a second.
func (d *Daemon) reading() pulse.Reading {
	t := d.metrics.Totals()
	var load fsm.Load
	d.store.View(func(m *fsm.Machine) { load = m.Load() })
	return pulse.Reading{
		Requests: t.Requests, Errors: t.Errors, Granted: t.Granted, Returned: t.Returned, TokensIn: t.TokensIn, TokensOut: t.TokensOut,
		Wait: distribution(t.Wait), FirstByte: distribution(t.FirstByte), Duration: distribution(t.Duration),
		Pending: load.Pending, InFlight: load.InFlight, Capacity: load.Capacity, Unlimited: load.Unlimited,
	}
}

func distribution(d metrics.Distribution) pulse.Distribution {
	return pulse.Distribution{Bounds: d.Bounds, Counts: d.Counts}
}

// samples is what the admin listener tells of the pulse.
func (d *Daemon) samples(after, until uint64) ([]adminapi.Sample, uint64) {
	list, newest := d.pulse.Between(after, until)
	out := make([]adminapi.Sample, 0, len(list))
	for i := range list {
		out = append(out, showSample(&list[i]))
	}
	return out, newest
}

func showSample(s *pulse.Sample) adminapi.Sample {
	out := adminapi.Sample{
		AtMS: s.At.UnixMilli(), StepMS: s.Step.Milliseconds(), Requests: int64(s.Requests), Errors: int64(s.Errors),
		Granted: int64(s.Granted), Returned: int64(s.Returned), TokensIn: int64(s.TokensIn), TokensOut: int64(s.TokensOut),
		Pending: s.Pending, InFlight: s.InFlight,
		WaitMS: showQuantiles(&s.Wait), FirstByteMS: showQuantiles(&s.FirstByte), DurationMS: showQuantiles(&s.Duration),
	}
	if !s.Unlimited {
		out.Capacity = &s.Capacity
	}
	return out
}

// showQuantiles gives milliseconds, to a hundredth: the histograms are less exact than that.
func showQuantiles(q *pulse.Quantiles) (out adminapi.Quantiles) {
	if !q.Any {
		return out
	}
	ms := [...]float64{hundredths(q.P50.Seconds()), hundredths(q.P90.Seconds()), hundredths(q.P99.Seconds())}
	out.P50, out.P90, out.P99 = &ms[0], &ms[1], &ms[2]
	return out
}

// hundredths gives the milliseconds of some seconds.
func hundredths(seconds float64) float64 { return float64(int64(seconds*1e5+0.5)) / 100 }
