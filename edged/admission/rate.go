package admission

import (
	"sync"
	"time"
)

// rateSpan is how many seconds back releases are counted.
const rateSpan = 30

// rate counts releases per second over the last rateSpan seconds.
type rate struct {
	mu      sync.Mutex // guards all
	began   time.Time
	second  int64 // of the newest bucket
	buckets [rateSpan]int
	sum     int
}

func (r *rate) start(now time.Time) { r.began = now }

func (r *rate) add(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.move(now)
	r.buckets[r.second%rateSpan]++
	r.sum++
}

// move empties the buckets of the seconds that have passed since the last call.
func (r *rate) move(now time.Time) {
	s := int64(now.Sub(r.began) / time.Second)
	for n := 0; r.second < s && n < rateSpan; n++ {
		r.second++
		r.sum -= r.buckets[r.second%rateSpan]
		r.buckets[r.second%rateSpan] = 0
	}
	r.second = max(r.second, s)
}

// Bounds of what clients are told; SDKs ignore or give up on more than a minute.
const (
	retryMin     = time.Second
	retryMax     = time.Minute
	retryUnknown = 5 * time.Second // nothing was released lately
)

// estimate is the time in which the waiting ones would be served at the present rate.
func (r *rate) estimate(now time.Time, waiting int) time.Duration {
	r.mu.Lock()
	r.move(now)
	sum, span := r.sum, min(now.Sub(r.began), rateSpan*time.Second)
	r.mu.Unlock()
	if sum == 0 {
		return retryUnknown
	}
	d := span * time.Duration(waiting+1) / time.Duration(sum)
	return min(max(d, retryMin), retryMax).Round(time.Second)
}
