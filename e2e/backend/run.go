package backend

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"time"
)

// bodyKeptMax is the largest body that a Run keeps, in bytes.
const bodyKeptMax = 4096

// End is how a run ended.
type End int

// The ends.
const (
	Running End = iota
	Finished
	Aborted // the caller left
	Dropped // the plan reset the connection
	Failed  // the plan's status, or FailEvery
)

// Run is one request that was counted as running.
type Run struct {
	N        int // order of arrival, from 1
	Tag      string
	Path     string
	Model    string
	Stream   bool
	Size     int64 // bytes of body
	Sum      [sha256.Size]byte
	Header   http.Header
	Body     []byte // if it is small (bodyKeptMax)
	Sent     int    // tokens sent
	End      End
	Together int // how many ran when it began, itself included
}

// Stats are the backend's counts.
type Stats struct {
	Current    int // running now
	Peak       int // most at the same time
	Total      int // runs begun
	Held       int // waiting for Let
	Finished   int
	Aborted    int
	NotRun     int // answers that said that nothing ran
	Violations int // requests beyond Limit
	BytesIn    int64
}

// asked is what the backend reads of a request's body.
type asked struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	User     string `json:"user"`
	Metadata struct {
		Tag string `json:"tag"`
	} `json:"metadata"`
}

func (a *asked) tag() string {
	if a.User != "" {
		return a.User
	}
	return a.Metadata.Tag
}

func readAsked(body []byte) (asked, error) {
	var a asked
	err := json.Unmarshal(body, &a)
	return a, err
}

// abortGrace is how long a run beyond the limit waits for the server to notice that the caller of another one has left:
// a closed connection and a new one race on their way in.
const abortGrace = 200 * time.Millisecond

// beginOrWait is begin with abortGrace: only a place that an abort frees in that time was free already.
func (b *Backend) beginOrWait(ctx context.Context, r *Run) (*running, bool) {
	for end := time.Now().Add(abortGrace); ; {
		aborted := b.Stats().Aborted
		if x, ok := b.begin(r); ok {
			return x, true
		}
		for b.Stats().Aborted == aborted && time.Now().Before(end) && pause(ctx, time.Millisecond) {
		}
		if b.Stats().Aborted == aborted {
			b.mu.Lock()
			if ctx.Err() == nil { // else its caller had left before it began: it never ran, and nobody thinks it does
				b.stats.Violations++
			}
			b.mu.Unlock()
			return nil, false
		}
	}
}

// begin counts a run, or reports that it is beyond the limit.
func (b *Backend) begin(r *Run) (*running, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && b.stats.Current >= b.limit {
		return nil, false
	}
	b.stats.BytesIn += r.Size
	b.stats.Total++
	b.stats.Current++
	b.stats.Peak = max(b.stats.Peak, b.stats.Current)
	r.N, r.Together = b.stats.Total, b.stats.Current
	x := &running{Run: *r, let: make(chan struct{})}
	if b.keep > 0 {
		if len(b.runs) == b.keep {
			b.runs = b.runs[1:]
		}
		b.runs = append(b.runs, x)
	}
	return x, true
}

// finish ends a run once.
func (b *Backend) finish(x *running, e End) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x.End != Running {
		return
	}
	x.End = e
	b.stats.Current--
	switch e {
	case Finished:
		b.stats.Finished++
	case Aborted:
		b.stats.Aborted++
	}
}

func (b *Backend) sent(x *running) {
	b.mu.Lock()
	x.Sent++
	b.mu.Unlock()
}

// Stats returns the counts.
func (b *Backend) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Held = len(b.held)
	return s
}

// Runs returns what ran, in order of arrival: the last Options.Keep.
func (b *Backend) Runs() []Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Run, len(b.runs))
	for i, x := range b.runs {
		out[i] = x.Run
	}
	return out
}

// Tags returns the tags of what ran, in order of arrival.
func (b *Backend) Tags() []string {
	out := []string{}
	for _, r := range b.Runs() {
		out = append(out, r.Tag)
	}
	return out
}

// Run returns the last run with a tag.
func (b *Backend) Run(tag string) (Run, bool) {
	runs := b.Runs()
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Tag == tag {
			return runs[i], true
		}
	}
	return Run{}, false
}
