package pulse

import "time"

// Reading is what was counted since the edge's start, and how full it is at the moment.
type Reading struct {
	Requests, Errors    uint64
	Granted, Returned   uint64
	TokensIn, TokensOut uint64

	Wait, FirstByte, Duration Distribution

	Pending, InFlight int
	Capacity          int  // of what is connected
	Unlimited         bool // some of it has no bound
}

// Distribution counts observations by size: Counts[i] are those up to Bounds[i] seconds and above the bound before; the last
// of Counts, one more than Bounds, are those above all.
type Distribution struct {
	Bounds []float64
	Counts []uint64
}

// Sample is what happened in one second or one minute, and how it stood at its end.
type Sample struct {
	Number uint64
	At     time.Time     // its end
	Step   time.Duration // a second or a minute

	Requests, Errors    uint64
	Granted, Returned   uint64
	TokensIn, TokensOut uint64

	Pending, InFlight int
	Capacity          int
	Unlimited         bool

	Wait, FirstByte, Duration Quantiles
}

func sampleOf(from, to *Reading, at time.Time, step time.Duration) Sample {
	return Sample{
		At: at, Step: step,
		Requests: rise(from.Requests, to.Requests), Errors: rise(from.Errors, to.Errors),
		Granted: rise(from.Granted, to.Granted), Returned: rise(from.Returned, to.Returned),
		TokensIn: rise(from.TokensIn, to.TokensIn), TokensOut: rise(from.TokensOut, to.TokensOut),
		Pending: to.Pending, InFlight: to.InFlight, Capacity: to.Capacity, Unlimited: to.Unlimited,
		Wait:      quantilesOf(&from.Wait, &to.Wait),
		FirstByte: quantilesOf(&from.FirstByte, &to.FirstByte),
		Duration:  quantilesOf(&from.Duration, &to.Duration),
	}
}

// rise is how much a counter grew; one that fell began anew.
func rise(from, to uint64) uint64 {
	if to < from {
		return to
	}
	return to - from
}
