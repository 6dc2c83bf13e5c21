package storage

import (
	"time"

	"iop/fsm"
)

// stepMax is the most that cluster time goes on in one step, so that a process that was stopped, or a machine that was
// paused, or a disk that stalled, expires nothing that had no chance to act.
const stepMax = time.Second

// clock is cluster time as the leader keeps it: what the machine had when the term began, and the leader's monotonic
// clock since then. It must be read at least every stepMax to keep pace. It belongs to the batcher's goroutine.
type clock struct {
	monotonic func() time.Duration
	now       fsm.Time
	last      time.Duration
}

// anchor begins a term at the machine's time.
func (c *clock) anchor(at fsm.Time) { c.now, c.last = at, c.monotonic() }

// read returns cluster time.
func (c *clock) read() fsm.Time {
	t := c.monotonic()
	if step := t - c.last; step > 0 {
		c.now += fsm.Time(min(step, stepMax))
	}
	c.last = t
	return c.now
}
