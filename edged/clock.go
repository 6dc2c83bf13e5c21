package edged

import "time"

// jumpLeast is by how much the wall clock has to move against the monotonic one to be called a jump.
const jumpLeast = time.Second

// wallClock notices jumps of the wall clock. The zero value has seen nothing.
type wallClock struct{ last time.Time }

// look takes a reading, which must be from time.Now, and tells by how much the wall clock has jumped since the one before; 0
// = it has not.
func (c *wallClock) look(now time.Time) time.Duration {
	last := c.last
	c.last = now
	if last.IsZero() {
		return 0
	}
	off := now.Round(0).Sub(last.Round(0)) - now.Sub(last)
	if off.Abs() < jumpLeast {
		return 0
	}
	return off
}
