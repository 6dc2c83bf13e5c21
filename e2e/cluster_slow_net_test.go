package e2e

import (
	"testing"
	"time"
)

// TestSlowAndFlappingNetworkUnderLoad: under load, what replicas send each other is late, then narrow, and then one of
// them is cut off and comes back again and again. Nothing is lost, doubled or stranded, and no stream breaks.
func TestSlowAndFlappingNetworkUnderLoad(t *testing.T) {
	t.Parallel()
	r := dice(t)
	x := newRush(t)
	c := x.c
	f := x.inflict(&fault{what: "everything 20 ms late"})
	for _, row := range c.paths {
		for _, p := range row {
			p.Delay(20 * time.Millisecond)
		}
	}
	x.flows(24)
	c.heal()
	x.mend(f)
	f = x.inflict(&fault{what: "64 KiB a second"})
	for _, row := range c.paths {
		for _, p := range row {
			p.Throttle(64 << 10)
		}
	}
	x.flows(24)
	c.heal()
	x.mend(f)
	f = x.inflict(&fault{what: "a replica that comes and goes"})
	for range rounds(8, 80) {
		c.apart(r.IntN(3))
		time.Sleep(time.Duration(50+r.IntN(700)) * time.Millisecond) // the fault itself
		c.heal()
		time.Sleep(time.Duration(50+r.IntN(300)) * time.Millisecond)
	}
	for i := range c.replicas {
		c.caughtUp(i)
	}
	x.mend(f)
	x.flows(12)
	x.end()
}
