package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"iop/fsm"
)

// Subject is what a story is about; one of its fields is set.
type Subject struct {
	Request  fsm.RequestID
	Lease    fsm.LeaseID // its story is that of its request
	Node     fsm.NodeID
	Provider fsm.ProviderID
	// Since bounds the search for a request's beginning: nothing before this index is told. 0 = as far as the log goes.
	Since uint64
}

// Line is one thing that happened to a subject.
type Line struct {
	Index      uint64    // of the log
	Time       time.Time // wall stamp of the entry
	Command    string    // kind of the command that brought it about
	Edge       string    // that proposed it; "" = none, or its session had ended
	Session    uint64    // that proposed it; 0 = none
	Request    string
	Lease      uint64
	Provider   string
	Node       string
	Generation uint64
	Outcome    string // of the command, or what happened because of it
	Text       string // for people
}

// Story is what the history tells of a subject.
type Story struct {
	Subject  Subject
	Lines    []Line // in order
	From, To uint64 // the entries that were looked at
	// Complete: the whole history that is kept was looked at. Else time ran out, and older entries were not.
	Complete bool
	// Dropped lines: the oldest, if there are more than LinesMax.
	Dropped int
}

// LinesMax is how many lines of a story are kept.
const LinesMax = 10_000

// Story tells what happened to a subject, by replaying the part of the log that it takes and watching what came of each
// command. If ctx ends early, it tells what it found so far in the newest part. A subject that is not in the history
// has no lines.
func (p *Past) Story(ctx context.Context, s Subject) (*Story, error) {
	t := &teller{past: p, story: &Story{Subject: s, From: p.info.FirstIndex, To: p.End(), Complete: true}}
	var err error
	switch {
	case s.Lease != 0:
		err = t.lease(ctx, s.Lease)
	case s.Request != "":
		err = t.request(ctx, s.Request)
	default:
		err = t.owner(ctx, s)
	}
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("tell the story from %s: %w", p.dir, err)
	}
	if ctx.Err() != nil {
		t.story.Complete = false
	}
	return t.story, nil
}

// teller writes a story.
type teller struct {
	past  *Past
	story *Story
}

func (t *teller) add(l Line) {
	s := t.story
	if len(s.Lines) >= LinesMax {
		s.Lines = slices.Delete(s.Lines, 0, LinesMax/10)
		s.Dropped += LinesMax / 10
	}
	s.Lines = append(s.Lines, l)
}

// lease finds out whose lease it was.
func (t *teller) lease(ctx context.Context, id fsm.LeaseID) error {
	w, err := t.past.beforeLease(id)
	if err != nil {
		return err
	}
	if v, ok := w.machine.Lease(id); ok {
		return t.request(ctx, v.ID)
	}
	var request fsm.RequestID
	err = w.to(ctx, t.past.End(), func(_ *fsm.Entry, s fsm.Step) error {
		if s.Outcome.Code == fsm.Granted && s.Outcome.Grant.Lease == id {
			request = s.Outcome.Grant.Request
		}
		for i := range s.Effects {
			if f := &s.Effects[i]; f.Kind == fsm.EffectGranted && f.Grant.Lease == id {
				request = f.Request
			}
		}
		if request != "" {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return t.request(ctx, request)
	}
	return err
}

// beforeLease starts at the newest base in which the lease was not given yet, or at the oldest of all.
func (p *Past) beforeLease(id fsm.LeaseID) (*traveller, error) {
	if _, err := p.Oldest(); err != nil {
		return nil, err
	}
	var failed error
	i := sort.Search(len(p.bases), func(i int) bool {
		m, err := p.restore(p.bases[i])
		if err != nil {
			failed = err
			return true
		}
		return m.NextLease() > id
	})
	if failed != nil {
		return nil, failed
	}
	return p.travel(p.bases[max(i-1, 0)].index)
}

// request tells of a request from the first entry that names it on.
func (t *teller) request(ctx context.Context, id fsm.RequestID) error {
	p := t.past
	since := max(p.info.FirstIndex, t.story.Subject.Since)
	t.story.From = since
	named, from, err := p.mentions(ctx, []byte(id), since)
	if err != nil {
		return err
	}
	if from > since {
		t.story.From, t.story.Complete = from, false
		var cancel context.CancelFunc // what was found is little, and worth telling
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
	}
	if err := t.bare(ctx, id, named); err != nil {
		return err
	}
	track := &tracker{teller: t, ids: []fsm.RequestID{id}}
	w, err := t.start(track, id, named)
	if err != nil || w == nil {
		return err
	}
	for {
		if !track.alive {
			i := sort.Search(len(named), func(i int) bool { return named[i] > w.at })
			if i == len(named) {
				return nil
			}
			if w, err = p.jump(ctx, w, named[i]-1); err != nil {
				return err
			}
			track.m = w.machine
		}
		if w.at >= p.End() {
			return nil
		}
		if err := w.to(ctx, min(w.at+stride, p.End()), track.see); err != nil {
			return err
		}
	}
}

// grace is how long the replay may take when the search took all the time there was.
const grace = 2 * time.Second

// bare tells of the commands whose outcome can't be told: no base is as old as they are.
func (t *teller) bare(ctx context.Context, id fsm.RequestID, named []uint64) error {
	oldest, err := t.past.Oldest()
	if errors.Is(err, ErrUnreachable) {
		oldest = t.past.End()
	}
	if len(named) == 0 || named[0] > oldest {
		return nil
	}
	f := Filter{From: named[0], To: min(named[len(named)-1], oldest), Request: id}
	return t.past.Log(ctx, f, func(r *Record) error {
		t.add(Line{
			Index: r.Index, Time: r.Time, Command: r.Kind, Session: r.Session, Request: string(id), Outcome: "unknown",
			Text: r.Text + ": what came of it is not in the history any more",
		})
		return nil
	})
}

// stride is how far to go before looking whether there is more to tell.
const stride = 1024

// start returns a traveller before the first thing to tell, nil if there is nothing.
func (t *teller) start(track *tracker, id fsm.RequestID, named []uint64) (*traveller, error) {
	p := t.past
	oldest, err := p.Oldest()
	if err != nil {
		return nil, err
	}
	w, err := p.travel(min(max(oldest, t.story.From-1), p.End()))
	if err != nil {
		return nil, err
	}
	track.m = w.machine
	if row, ok := w.machine.Row(id); ok {
		track.known(&row, w.at)
		return w, nil
	}
	if len(named) == 0 {
		return nil, nil
	}
	return w, nil
}

// jump goes to index without telling, over the shortest way.
func (p *Past) jump(ctx context.Context, w *traveller, index uint64) (*traveller, error) {
	b, err := p.baseFor(max(index, w.at))
	if err != nil {
		return nil, err
	}
	if b.index > w.at {
		if w, err = p.travel(index); err != nil {
			return nil, err
		}
	}
	return w, w.to(ctx, index, nil)
}

// mentionsEach is how many entries are searched before the next older ones are.
const mentionsEach = 16384

// mentions returns the entries that hold the bytes, from the newest back as far as ctx lets it, and how far that was.
// It decodes nothing: an entry that holds them by chance does no harm.
func (p *Past) mentions(ctx context.Context, what []byte, since uint64) (indexes []uint64, from uint64, err error) {
	from = p.info.LastIndex + 1
	for from > since && ctx.Err() == nil {
		low := since
		if from > low+mentionsEach {
			low = from - mentionsEach
		}
		var found []uint64
		err := p.log.each(low, from-1, func(r *rawEntry) error {
			if r.command && bytes.Contains(r.data, what) {
				found = append(found, r.index)
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
		indexes = append(found, indexes...)
		from = low
	}
	return indexes, from, nil
}
