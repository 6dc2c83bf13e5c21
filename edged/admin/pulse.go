package admin

import (
	"net/http"

	"iop/edged/adminapi"
)

func (a *api) pulse(*http.Request) (any, error) {
	out := adminapi.Pulse{Samples: []adminapi.Sample{}}
	samples, _ := a.pulseSince(0)
	out.Samples = append(out.Samples, samples...)
	return out, nil
}

// pulseSince gives the samples after one, and the number of the last.
func (a *api) pulseSince(after uint64) ([]adminapi.Sample, uint64) {
	if a.Pulse == nil {
		return nil, after
	}
	return a.Pulse(after, 0)
}

// pulseUntil gives those up to one.
func (a *api) pulseUntil(last uint64) []adminapi.Sample {
	if a.Pulse == nil || last == 0 {
		return nil
	}
	samples, _ := a.Pulse(0, last)
	return samples
}
