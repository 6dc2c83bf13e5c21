package storage

import (
	"context"
	"errors"
	"fmt"

	"iop/fsm"
)

// traveller is a machine that goes forward through a log.
type traveller struct {
	past    *Past
	machine *fsm.Machine
	at      uint64 // last entry of the log that it has seen; not every one is a command
	entry   *fsm.Entry
	writes  func(index uint64, writes []fsm.Write) // told of those of each entry; nil = nobody
}

// travel starts at the newest base at or before index.
func (p *Past) travel(index uint64) (*traveller, error) {
	b, err := p.baseFor(index)
	if err != nil {
		return nil, err
	}
	m, err := p.restore(b)
	if err != nil {
		return nil, err
	}
	return &traveller{past: p, machine: m, at: b.index}, nil
}

// decoded is a part of the log on its way from the decoder to the machine.
type decoded struct {
	entries []*fsm.Entry
	at      uint64 // last entry read
	err     error
}

// decodedEach is how many entries go at once; decodedAhead how many such parts may be ahead of the machine.
const (
	decodedEach  = 256
	decodedAhead = 4
)

// to goes forward to index; reading and decoding run ahead of applying. see, if not nil, is shown each command.
func (w *traveller) to(ctx context.Context, index uint64, see func(*fsm.Entry, fsm.Step) error) error {
	if index <= w.at {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	parts := make(chan decoded, decodedAhead)
	go func() {
		defer close(parts)
		w.past.decode(ctx, w.at+1, index, parts)
	}()
	defer func() {
		cancel()
		for range parts { // until the reader has ended
		}
	}()
	for part := range parts {
		if part.err != nil {
			return part.err
		}
		for _, e := range part.entries {
			if err := w.apply(e, see); err != nil {
				return err
			}
		}
		w.at = part.at
	}
	return ctx.Err()
}

// decode sends entries from … to, in parts; the last one has the error if there was one.
func (p *Past) decode(ctx context.Context, from, to uint64, parts chan<- decoded) {
	var d decoder
	part := decoded{at: from - 1}
	send := func() error {
		select {
		case parts <- part:
			part = decoded{at: part.at, entries: make([]*fsm.Entry, 0, decodedEach)}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	part.err = p.log.each(from, to, func(r *rawEntry) error {
		part.at = r.index
		if !r.command {
			return nil
		}
		e, err := d.entry(r.data)
		if err != nil {
			return p.badEntry(r.index, err)
		}
		e.Index, e.Term = r.index, r.term
		if part.entries = append(part.entries, e); len(part.entries) < decodedEach {
			return nil
		}
		return send()
	})
	if ctx.Err() == nil {
		_ = send() // fails only if nobody listens any more
	}
}

// badEntry says what can be done about an entry that can't be read.
func (p *Past) badEntry(index uint64, err error) error {
	if errors.Is(err, ErrNewer) {
		return fmt.Errorf("log entry %d: %w: run that version or a newer one", index, err)
	}
	return fmt.Errorf("%w: log entry %d of %s: %w; restore the directory from a backup", ErrDamaged, index, p.dir, err)
}

func (w *traveller) apply(e *fsm.Entry, see func(*fsm.Entry, fsm.Step) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: log entry %d of %s does not fit the state before it: %v; restore the directory from a backup",
				ErrDamaged, e.Index, w.past.dir, r)
		}
	}()
	if see == nil {
		res := w.machine.Apply(e)
		if w.writes != nil {
			w.writes(e.Index, res.Writes)
		}
		return nil
	}
	w.entry = e
	w.machine.ApplyWatched(e, func(s fsm.Step) {
		if err == nil {
			err = see(e, s)
		}
	})
	return err
}
