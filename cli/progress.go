package cli

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// progress is a line on a terminal that tells what a long command waits for and how long already. Into a pipe or a file it
// writes nothing at all.
type progress struct {
	w     io.Writer // nil: nobody looks
	stop  context.CancelFunc
	over  sync.WaitGroup
	begun time.Time

	mu   sync.Mutex // guards the rest
	text string
}

// Bounds of the line.
const (
	progressStep  = 100 * time.Millisecond // between two pictures of it
	progressAfter = 300 * time.Millisecond // before the first: what is quick shows nothing
	progressWidth = 79
)

// progress starts a line on standard error; done has to be called.
func (g *globals) progress(c *cobra.Command, text string) *progress {
	p := &progress{stop: func() {}, text: text, begun: time.Now()}
	if w := c.ErrOrStderr(); isTerminal(w) && g.lookup("TERM") != "dumb" {
		p.w = w
		ctx, stop := context.WithCancel(c.Context())
		p.stop = stop
		p.over.Go(func() { p.run(ctx) })
	}
	return p
}

// say changes what is waited for.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// done takes the line away.
func (p *progress) done() {
	p.stop()
	p.over.Wait()
}

func (p *progress) run(ctx context.Context) {
	tick := time.NewTicker(progressStep)
	defer tick.Stop()
	shown := false
	for frame := 0; ; frame++ {
		select {
		case <-ctx.Done():
			if shown {
				_, _ = io.WriteString(p.w, "\r\x1b[K")
			}
			return
		case <-tick.C:
			if time.Since(p.begun) < progressAfter {
				continue
			}
			shown = true
			// Nobody is left to tell if the terminal is gone.
			_, _ = io.WriteString(p.w, "\r\x1b[K"+p.picture(frame))
		}
	}
}

// picture is the line at the moment, never so long that it wraps.
func (p *progress) picture(frame int) string {
	p.mu.Lock()
	text := printable(p.text)
	p.mu.Unlock()
	elapsed := fmt.Sprintf(" (%s)", time.Since(p.begun).Truncate(time.Second))
	for width(text) > progressWidth-2-len(elapsed) {
		r := []rune(text)
		text = string(r[:len(r)-1])
	}
	return string(`|/-\`[frame%4]) + " " + text + elapsed
}

// counter counts what goes through it, and tells a progress of it.
type counter struct {
	p    *progress
	verb string
	n    int64
}

// Write counts p.
func (x *counter) Write(p []byte) (int, error) {
	x.n += int64(len(p))
	x.p.say("%s: %s", x.verb, size(x.n))
	return len(p), nil
}

// size shows bytes as people say them.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}
