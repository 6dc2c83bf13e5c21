package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// pastOptions choose a moment, and whose log tells of it.
type pastOptions struct {
	offlineOptions
	at     uint64
	atTime string
}

func (o *pastOptions) register(c *cobra.Command) {
	o.offlineOptions.register(c)
	c.Flags().Uint64Var(&o.at, "at", 0, "look back: the state after this `index` of the log")
	c.Flags().StringVar(&o.atTime, "at-time", "", "look back: the state at this `time`, as 2026-01-31T15:04:05Z, \"2026-01-31 15:04:05\" here, or 10m (ago)")
	c.MarkFlagsMutuallyExclusive("at", "at-time")
}

func (o *pastOptions) moment(c *cobra.Command) (adminapi.Moment, error) {
	m := adminapi.Moment{Index: o.at}
	if o.atTime == "" {
		return m, nil
	}
	var err error
	if m.Time, err = parseTime(o.atTime, time.Now()); err != nil {
		return m, usage(c, fmt.Errorf("--at-time: %w", err))
	}
	return m, nil
}

func parseTime(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write it as 2026-01-31T15:04:05Z, or 10m for ten minutes ago", s)
}

// offline is the state of a stopped replica's directory at a moment, and its history.
type offline struct {
	ctx     context.Context
	dir     string
	past    *storage.Past
	machine *fsm.Machine
}

// look asks a directory, or an edge if none is named. The directory of a running replica is not touched: its edge is
// asked instead, if it is the one that the flags name.
func look[T any](g *globals, c *cobra.Command, o *pastOptions, live func(*adminapi.Client, adminapi.Moment) (T, error), stopped func(*offline) (T, error)) (T, error) {
	var none T
	at, err := o.moment(c)
	if err != nil {
		return none, err
	}
	if o.dataDir != "" {
		out, err := lookInto(c.Context(), o.dataDir, at, stopped)
		if !errors.Is(err, storage.ErrLocked) {
			return out, err
		}
		if err := g.owns(c, o.dataDir, err); err != nil {
			return none, err
		}
	}
	client, err := g.client(c)
	if err != nil {
		return none, err
	}
	defer client.Close()
	return live(client, at)
}

func lookInto[T any](ctx context.Context, dir string, at adminapi.Moment, fn func(*offline) (T, error)) (out T, err error) {
	p, err := storage.OpenPast(dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	x := &offline{ctx: ctx, dir: dir, past: p}
	index := at.Index
	if !at.Time.IsZero() {
		if index, err = p.IndexAt(ctx, at.Time); err != nil {
			return out, reach(err, dir)
		}
	}
	if x.machine, err = p.At(ctx, index); err != nil {
		return out, reach(err, dir)
	}
	return fn(x)
}

// reach adds what tells how far the history goes.
func reach(err error, dir string) error {
	if !errors.Is(err, storage.ErrUnreachable) {
		return err
	}
	return &faultError{code: ExitFailure, err: err, cure: "'iopctl debug check --data-dir " + dir + "' tells how far it reaches"}
}

// owns makes sure that the edge that would be asked is the one whose running replica has the directory.
func (g *globals) owns(c *cobra.Command, dir string, locked error) error {
	replica, err := storage.ReplicaOf(dir)
	if err != nil {
		return err
	}
	client, err := g.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := client.Status(c.Context())
	if err != nil || s.Edge != replica {
		return &faultError{
			code: ExitFailure, err: locked,
			cure: fmt.Sprintf("ask the running edge %s: name its admin address with --edge; or stop it first", replica),
		}
	}
	_, _ = fmt.Fprintf(c.ErrOrStderr(), "%s is in use: edge %s is asked instead\n", printable(dir), printable(replica))
	return nil
}

// history opens a directory's history for a command that needs the files themselves: of a running replica, a verified
// copy of them.
func history(c *cobra.Command, dir string, fn func(*storage.Past) error) (err error) {
	p, err := storage.OpenPast(dir)
	if errors.Is(err, storage.ErrLocked) {
		p, err = copied(c, dir, &dir)
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return reach(fn(p), dir)
}

// copied opens a copy of a running replica's directory; into is set to what has to be removed.
func copied(c *cobra.Command, dir string, into *string) (*storage.Past, error) {
	temporary, err := os.MkdirTemp("", "iopctl-copy-")
	if err != nil {
		return nil, fmt.Errorf("make a place for a copy: %w", err)
	}
	*into = temporary
	_, _ = fmt.Fprintf(c.ErrOrStderr(), "%s is in use: a copy of it is read\n", printable(dir))
	if err := storage.CopyPast(c.Context(), dir, temporary); err != nil {
		return nil, &faultError{code: ExitFailure, err: err, cure: "try again when the edge has less to do, or stop it first"}
	}
	p, err := storage.OpenPast(temporary)
	if err != nil {
		return nil, fmt.Errorf("copy of %s: %w", dir, err)
	}
	return p, nil
}

// subject is a lease's id or a request's.
func (x *offline) story(s storage.Subject) (*adminapi.Story, error) {
	story, err := x.past.Story(x.ctx, s)
	if errors.Is(err, storage.ErrUnreachable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return storyOf(story), nil
}

func storyOf(s *storage.Story) *adminapi.Story {
	out := &adminapi.Story{
		Lines: make([]adminapi.StoryLine, 0, len(s.Lines)), From: s.From, To: s.To, Complete: s.Complete, Dropped: s.Dropped,
	}
	for _, l := range s.Lines {
		out.Lines = append(out.Lines, adminapi.StoryLine(l))
	}
	return out
}

// showStory writes a line per thing that happened.
func showStory(p *page, s *adminapi.Story) {
	if s == nil {
		p.line("Its story could not be told: the history does not reach back far enough, or the edge is too busy.")
		return
	}
	if s.Dropped > 0 {
		p.line("(%d older lines are not shown)", s.Dropped)
	}
	t := &table{
		columns: []column{
			{name: "INDEX", right: true},
			{name: "TIME"},
			{name: "EDGE", wide: true},
			{name: "SESSION", right: true, wide: true},
			{name: "GEN", right: true, wide: true},
			{name: "OUTCOME"},
			{name: "WHAT HAPPENED"},
		},
		empty: fmt.Sprintf("The log knows nothing of it between index %d and %d.", s.From, s.To),
	}
	for _, l := range s.Lines {
		t.rows = append(t.rows, cells(
			l.Index, l.Time.Format("2006-01-02 15:04:05.000"), l.Edge, l.Session, l.Generation, cell{l.Outcome, outcomePaint(l.Outcome)}, l.Text,
		))
	}
	p.table(t)
	if !s.Complete {
		p.line("Only entries from index %d on were searched, time ran out; ask again, or with --data-dir of a stopped replica or a copy.", s.From)
	}
}

func outcomePaint(outcome string) paint {
	switch outcome {
	case "granted", "returned", "done":
		return paintGood
	case "queued", "detached", "fencing", "waiting":
		return paintBusy
	}
	if strings.Contains(outcome, "_") || outcome == "unavailable" || outcome == "abandoned" {
		return paintBad
	}
	return paintNone
}
