package pulse_test

import (
	"testing"
	"time"

	"iop/edged/pulse"
)

// counter is what was counted so far.
type counter struct{ pulse.Reading }

func (c *counter) read() pulse.Reading {
	r := c.Reading
	r.Wait.Counts = append([]uint64(nil), c.Wait.Counts...)
	return r
}

// Samples are what happened in between, each of them once, at most as many as are kept.
func TestSamplesAreDifferences(t *testing.T) {
	c := &counter{}
	c.Wait = pulse.Distribution{Bounds: []float64{.01, .1, 1}, Counts: make([]uint64, 4)}
	p := pulse.New(c.read)
	c.Requests = 100 // before the pulse began
	now := time.Date(2026, 1, 2, 3, 4, 30, 0, time.UTC)
	p.Beat(now)
	c.Requests, c.Pending, c.Capacity = 107, 3, 9
	c.Wait.Counts[1] = 10
	p.Beat(now.Add(time.Second))
	p.Beat(now.Add(2 * time.Second))
	list, newest := p.Between(0, 0)
	if len(list) != 2 || newest != 2 || list[0].Requests != 7 || list[0].Pending != 3 || list[1].Requests != 0 || list[1].Wait.Any {
		t.Fatalf("%d, %+v", newest, list)
	}
	if q := list[0].Wait; !q.Any || q.P50 != 55*time.Millisecond || q.P99 != 100*time.Millisecond {
		t.Errorf("quantiles %+v", q)
	}
	p.Beat(now.Add(30 * time.Second))
	list, newest = p.Between(2, 0)
	if len(list) != 2 || newest != 4 || list[0].Step != time.Minute || list[0].Requests != 7 || list[0].Wait.P50 != 55*time.Millisecond || list[1].Step != time.Second {
		t.Errorf("the end of a minute: %d, %+v", newest, list)
	}
	if list, _ := p.Between(1, 3); len(list) != 2 {
		t.Errorf("between: %+v", list)
	}
	c.Requests = 5 // counting began anew
	for i := range 3 * pulse.Seconds {
		p.Beat(now.Add(31*time.Second + time.Duration(i)*time.Second))
		if i == 0 {
			if list, _ := p.Between(newest, 0); len(list) != 1 || list[0].Requests != 5 {
				t.Errorf("after counting began anew: %+v", list)
			}
			c.Requests = 6
		}
	}
	list, _ = p.Between(4, 0)
	if m := list[1]; m.Step != time.Minute || m.Requests != 0 {
		t.Errorf("the second whole minute has what came before it: %+v", m)
	}
	list, newest = p.Between(4, 0)
	if newest != 4+3*pulse.Seconds+3*pulse.Seconds/60 || len(list) != pulse.Seconds+3*pulse.Seconds/60 {
		t.Errorf("%d samples, newest %d", len(list), newest)
	}
}

// A value above all bounds is told as the highest; one below the lowest between 0 and that.
func TestQuantilesAtTheEnds(t *testing.T) {
	c := &counter{}
	c.Wait = pulse.Distribution{Bounds: []float64{.01, .1}, Counts: make([]uint64, 3)}
	p := pulse.New(c.read)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p.Beat(now)
	c.Wait.Counts[0], c.Wait.Counts[2] = 2, 2
	p.Beat(now.Add(time.Second))
	list, _ := p.Between(0, 0)
	if q := list[0].Wait; q.P50 != 10*time.Millisecond || q.P90 != 100*time.Millisecond || q.P99 != 100*time.Millisecond {
		t.Errorf("%+v", q)
	}
}
