package spans

import (
	"testing"
	"time"
)

// What a second allows may come at once; then as much as time brings, and never more than a second's worth.
func TestAllowance(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	a := newAllowance(3)
	for _, step := range []struct {
		after time.Duration
		want  int // of ten that ask
	}{
		{0, 3}, {0, 0}, {400 * time.Millisecond, 1}, {-time.Second, 0}, {time.Second, 2}, {time.Hour, 3}, {time.Hour, 0}, {time.Hour + 999*time.Millisecond, 2},
	} {
		got := 0
		for range 10 {
			if a.take(began.Add(step.after)) {
				got++
			}
		}
		if got != step.want {
			t.Errorf("after %v: %d of 10, want %d", step.after, got, step.want)
		}
	}
	if newAllowance(0).take(began) || newAllowance(-1).take(began) {
		t.Error("an allowance of nothing allows something")
	}
}
