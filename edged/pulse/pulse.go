package pulse

import (
	"context"
	"sync"
	"time"
)

// How much is kept.
const (
	Seconds = 600
	Minutes = 720
)

// Pulse keeps the samples of one edge. It is safe for concurrent use.
type Pulse struct {
	read func() Reading

	mu      sync.Mutex // guards the rest
	seconds []Sample   // oldest first
	minutes []Sample
	newest  uint64
	last    Reading // at the end of the last second
	start   Reading // at the beginning of this minute
	minute  time.Time
	begun   bool
}

// New makes a pulse that asks read, which is called once a second by Run alone.
func New(read func() Reading) *Pulse { return &Pulse{read: read} }

// Run samples until ctx ends.
func (p *Pulse) Run(ctx context.Context) {
	p.Beat(time.Now())
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			p.Beat(now)
		}
	}
}

// Beat ends a second. The first call only begins; one that comes late has a sample of more than its second.
func (p *Pulse) Beat(now time.Time) {
	r := p.read()
	p.mu.Lock()
	defer p.mu.Unlock()
	minute := now.Truncate(time.Minute)
	if !p.begun {
		p.last, p.start, p.minute, p.begun = r, r, minute, true
		return
	}
	p.seconds = p.keep(p.seconds, Seconds, sampleOf(&p.last, &r, now, time.Second))
	if minute.After(p.minute) {
		p.minutes = p.keep(p.minutes, Minutes, sampleOf(&p.start, &r, now, time.Minute))
		p.start = r
	}
	// A clock that was set back would keep the minute open for as long.
	if !minute.Equal(p.minute) {
		p.minute = minute
	}
	p.last = r
}

func (p *Pulse) keep(list []Sample, most int, s Sample) []Sample {
	p.newest++
	s.Number = p.newest
	if len(list) == most {
		copy(list, list[1:])
		list[most-1] = s
		return list
	}
	return append(list, s)
}

// Between gives the samples with numbers above after and up to until (0 = no bound), those of a minute first, each oldest
// first, and the number of the newest there is. Numbers rise by one with each sample of either kind.
func (p *Pulse) Between(after, until uint64) (samples []Sample, newest uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range [][]Sample{p.minutes, p.seconds} {
		for i := range list {
			if n := list[i].Number; n > after && (until == 0 || n <= until) {
				samples = append(samples, list[i])
			}
		}
	}
	return samples, p.newest
}
