package pulse

import (
	"math"
	"time"
)

// Quantiles of the observations of one sample. Any false: there was none, and they are 0.
type Quantiles struct {
	Any           bool
	P50, P90, P99 time.Duration
}

func quantilesOf(from, to *Distribution) Quantiles {
	counts := make([]uint64, len(to.Counts))
	total := uint64(0)
	for i := range counts {
		before := uint64(0)
		if i < len(from.Counts) {
			before = from.Counts[i]
		}
		counts[i] = rise(before, to.Counts[i])
		total += counts[i]
	}
	if total == 0 {
		return Quantiles{}
	}
	at := func(q float64) time.Duration { return quantile(q, to.Bounds, counts, total) }
	return Quantiles{Any: true, P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

// quantile finds the bucket of the observation with the rank, and its place in it.
func quantile(q float64, bounds []float64, counts []uint64, total uint64) time.Duration {
	rank := math.Max(1, math.Ceil(q*float64(total)))
	below := 0.0
	for i, n := range counts {
		if below+float64(n) < rank {
			below += float64(n)
			continue
		}
		if i >= len(bounds) {
			break
		}
		low := 0.0
		if i > 0 {
			low = bounds[i-1]
		}
		part := (rank - below) / float64(n)
		return time.Duration((low + (bounds[i]-low)*part) * float64(time.Second))
	}
	if len(bounds) == 0 {
		return 0
	}
	return time.Duration(bounds[len(bounds)-1] * float64(time.Second))
}
