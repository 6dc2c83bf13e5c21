package edged

import "time"

// jumpLeast is by how much the wall clock has to move against the monotonic one to be called a jump.
const jumpLeast = time.Second

// wallClock notices jumps of the wall clock. The zero value has seen nothing.
type wallClock struct {
	wall  time.Time
	since time.Duration // on the monotonic clock
}

// look takes a reading of both clocks and tells by how much the wall clock has jumped since the one before; 0 = it has not.
func (c *wallClock) look(wall time.Time, since time.Duration) time.Duration {
	wall = wall.Round(0) // without the monotonic reading, which Sub would prefer
	last := *c
	c.wall, c.since = wall, since
	if last.wall.IsZero() {
		return 0
	}
	off := wall.Sub(last.wall) - (since - last.since)
	if off.Abs() < jumpLeast {
		return 0
	}
	return off
}
