package admission

import (
	"testing"
	"time"
)

func TestRetryAfterFollowsTheRateOfReleases(t *testing.T) {
	var r rate
	at := time.Unix(1000, 0)
	r.start(at)
	if got := r.estimate(at, 10); got != retryUnknown {
		t.Errorf("without a release: %v", got)
	}
	for range 60 { // two a second for half a minute
		at = at.Add(time.Second / 2)
		r.add(at)
	}
	cases := []struct {
		waiting int
		want    time.Duration
	}{{0, time.Second}, {9, 5 * time.Second}, {19, 10 * time.Second}, {1_000_000, time.Minute}}
	for _, c := range cases {
		if got := r.estimate(at, c.waiting); got != c.want {
			t.Errorf("%d waiting: %v, want %v", c.waiting, got, c.want)
		}
	}
	if got := r.estimate(at.Add(time.Hour), 9); got != retryUnknown {
		t.Errorf("an hour later: %v", got)
	}
}
