package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// watchOptions are the flags of what watches.
type watchOptions struct {
	every time.Duration // between two looks of the edge
	most  time.Duration // 0 = until it is stopped
}

func (o *watchOptions) register(c *cobra.Command) {
	c.Flags().DurationVar(&o.every, "every", time.Second, "how often the edge looks, 250ms to 10s; what comes and goes in between is not seen")
	c.Flags().DurationVar(&o.most, "for", 0, "stop after this `long`, 0 = when Ctrl-C is pressed")
}

func (o *watchOptions) check() error {
	if o.most < 0 {
		return fmt.Errorf("--for %s is negative", o.most)
	}
	return checkEvery(o.every)
}

// checkEvery tells what is wrong with how often an edge is to look for a feed.
func checkEvery(every time.Duration) error {
	if every < adminapi.LiveEveryMin || every > adminapi.LiveEveryMax {
		return fmt.Errorf("--every %s: it is %s to %s", every, adminapi.LiveEveryMin, adminapi.LiveEveryMax)
	}
	return nil
}

// watchLine is one line of JSON of what watches. Of lease and waiter it has one.
type watchLine struct {
	Time   time.Time            `json:"time"`
	Event  string               `json:"event"` // there (when the watch began), new, changed, gone; lost: the edge went away
	Lease  *adminapi.LiveLease  `json:"lease,omitempty"`
	Waiter *adminapi.LiveWaiter `json:"waiter,omitempty"`
	AgeMS  int64                `json:"age_ms"` // of it
	Text   string               `json:"text"`   // for people; the rest is for programs
}

// The events of a watchLine.
const (
	watchThere   = "there"
	watchNew     = "new"
	watchChanged = "changed"
	watchGone    = "gone"
	watchLost    = "lost"
)

// watchPause is the time between the end of a feed and the next call.
const watchPause = time.Second

// watched is what is watched: the rows of a picture, what tells them apart, and how a line of one reads.
type watched[T comparable] struct {
	rows func(*adminapi.Picture) []T
	key  func(*T) string
	line func(event string, row *T, now int64) watchLine
}

// watch follows the feed of an edge until the time is over, and tells of each change between two pictures. An edge that goes away
// is called again, and the next one that is named.
func watch[T comparable](g *globals, c *cobra.Command, o *watchOptions, what watched[T]) error {
	if err := o.check(); err != nil {
		return usage(c, err)
	}
	if g.output == "yaml" {
		return usage(c, errors.New("what watches prints lines: -o table, wide or json (one object a line)"))
	}
	client, err := g.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := c.Context(), context.CancelFunc(func() {})
	if o.most > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.most)
	}
	defer cancel()
	w := &watcher[T]{watched: what, print: g.linePrinter(c)}
	for {
		err := client.Live(ctx, o.every, w.take)
		switch {
		case ctx.Err() != nil && w.failed == nil:
			return nil
		case !w.begun, w.failed != nil: // nobody answered, or nobody reads
			return err
		}
		if err := w.print(watchLine{Time: time.Now().UTC(), Event: watchLost, Text: fmt.Sprintf("%v; calling again", err)}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchPause):
		}
	}
}

// watcher prints what is different from picture to picture.
type watcher[T comparable] struct {
	watched[T]
	print  func(watchLine) error
	live   adminapi.Picture
	old    []T
	begun  bool
	failed error // of printing
}

func (w *watcher[T]) take(f *adminapi.Frame) error {
	if err := w.live.Apply(f); err != nil {
		return err
	}
	next := w.rows(&w.live)
	differ(w.old, next, w.key, func(event string, row *T) {
		if w.failed != nil {
			return
		}
		l := w.line(event, row, f.AtMS)
		l.Time, l.Event = time.UnixMilli(f.AtMS).UTC(), event
		if !w.begun {
			l.Event = watchThere
		}
		w.failed = w.print(l)
	})
	w.old, w.begun = next, true
	return w.failed
}

// linePrinter prints lines as they come.
func (g *globals) linePrinter(c *cobra.Command) func(watchLine) error {
	out := c.OutOrStdout()
	p := page{color: g.colored(out)}
	return func(l watchLine) error {
		text := []byte(l.Time.Local().Format("15:04:05.000") + "  " + p.painted(cell{fmt.Sprintf("%-7s", l.Event), watchPaint(l.Event)}) +
			"  " + printable(l.Text) + "\n")
		if g.output == "json" {
			line, err := json.Marshal(l)
			if err != nil {
				return fmt.Errorf("encode output: %w", err)
			}
			text = append(harmless(line), '\n')
		}
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return nil
	}
}

func watchPaint(event string) paint {
	switch event {
	case watchNew:
		return paintGood
	case watchChanged:
		return paintBusy
	case watchLost:
		return paintBad
	}
	return paintNone
}

func newLeasesWatch(g *globals) *cobra.Command {
	var o watchOptions
	c := &cobra.Command{
		Use:   "watch",
		Short: "Print a line for each lease that comes, changes and goes",
		Long: `Print a line for each lease that there is, that comes, changes (fencing: its link is gone) and goes, as it happens, of all replicas.
With -o json each line is an object. It ends with --for or Ctrl-C (exit code 0); when the edge goes away it calls again.`,
		Example: "  iopctl leases watch\n  iopctl leases watch --for 10m -o json > leases.jsonl",
		Args:    exactly(0),
		RunE:    func(c *cobra.Command, _ []string) error { return watch(g, c, &o, watchedLeases()) },
	}
	o.register(c)
	return c
}

func watchedLeases() watched[adminapi.LiveLease] {
	return watched[adminapi.LiveLease]{
		rows: (*adminapi.Picture).Leases,
		key:  func(l *adminapi.LiveLease) string { return strconv.FormatUint(l.ID, 10) },
		line: func(event string, l *adminapi.LiveLease, now int64) watchLine {
			age := max(0, now-l.GrantedAtMS)
			text := fmt.Sprintf("lease %d  %s  %s on %s  %s", l.ID, l.Request, l.Model, l.Provider, l.State)
			if event == watchGone {
				text = fmt.Sprintf("lease %d  %s  %s on %s  ended after %s", l.ID, l.Request, l.Model, l.Provider, span(age))
			}
			return watchLine{Lease: l, AgeMS: age, Text: text}
		},
	}
}

func newQueueWatch(g *globals) *cobra.Command {
	var o watchOptions
	c := &cobra.Command{
		Use:   "watch",
		Short: "Print a line for each request that comes to wait, changes what it waits for, and leaves the queue",
		Long: `Print a line for each request that waits, that comes to wait, waits for something else, and leaves the queue (with a slot or without:
'iopctl requests explain' tells), as it happens. With -o json each line is an object. It ends with --for or Ctrl-C (exit code 0).`,
		Example: "  iopctl queue watch\n  iopctl queue watch --for 1h -o json > waits.jsonl",
		Args:    exactly(0),
		RunE:    func(c *cobra.Command, _ []string) error { return watch(g, c, &o, watchedWaiters()) },
	}
	o.register(c)
	return c
}

func watchedWaiters() watched[adminapi.LiveWaiter] {
	return watched[adminapi.LiveWaiter]{
		rows: (*adminapi.Picture).Waiters,
		key:  func(w *adminapi.LiveWaiter) string { return w.Request },
		line: func(event string, w *adminapi.LiveWaiter, now int64) watchLine {
			age := max(0, now-w.EnqueuedAtMS)
			text := fmt.Sprintf("%s  %s (%s)  %s: %s", w.Request, w.Model, w.Class, w.State, w.WaitsFor)
			if event == watchGone {
				text = fmt.Sprintf("%s  %s (%s)  left the queue after %s", w.Request, w.Model, w.Class, span(age))
			}
			return watchLine{Waiter: w, AgeMS: age, Text: text}
		},
	}
}

// differ tells of rows that are new, changed and gone, in the order of the rows.
func differ[T comparable](old, next []T, key func(*T) string, tell func(string, *T)) {
	before, after := make(map[string]*T, len(old)), make(map[string]bool, len(next))
	for i := range old {
		before[key(&old[i])] = &old[i]
	}
	for i := range next {
		after[key(&next[i])] = true
	}
	for i := range old {
		if !after[key(&old[i])] {
			tell(watchGone, &old[i])
		}
	}
	for i := range next {
		switch was := before[key(&next[i])]; {
		case was == nil:
			tell(watchNew, &next[i])
		case *was != next[i]:
			tell(watchChanged, &next[i])
		}
	}
}
