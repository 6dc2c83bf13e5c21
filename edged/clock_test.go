package edged

import (
	"testing"
	"time"
)

func TestWallClockJumps(t *testing.T) {
	begin := time.Now()
	var c wallClock
	for i, x := range []struct {
		wall, since, want time.Duration // after begin
	}{
		{0, 0, 0},
		{250 * time.Millisecond, 250 * time.Millisecond, 0},
		{10 * time.Second, 10 * time.Second, 0},         // the process stood still
		{11 * time.Second, 10900 * time.Millisecond, 0}, // it is slewed
		{3600 * time.Second, 11 * time.Second, 3588900 * time.Millisecond},
		{3601 * time.Second, 12 * time.Second, 0},
		{0, 13 * time.Second, -3602 * time.Second},
	} {
		if got := c.look(begin.Add(x.wall), x.since); got != x.want {
			t.Errorf("reading %d: %v, want %v", i, got, x.want)
		}
	}
}
