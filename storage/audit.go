package storage

import (
	"context"
	"errors"
	"fmt"

	"iop/fsm"
)

// Audit is what Check found in order.
type Audit struct {
	Entries   int         // read, each with its checksum
	Replayed  int         // applied from the oldest base on
	Checked   int         // states whose invariants were checked
	Snapshots int         // whose digest the replayed state had
	From, To  uint64      // indexes of the states
	Digest    string      // of the last state, in hex
	Stored    *VaultCheck // the stored responses; nil = they were not looked at, since a running replica has them open
}

// Check replays everything from the oldest base to the end, checks the invariants after every each-th command (1 = all),
// and compares the replayed state with every snapshot on the way. say, if not nil, is told of each step. An error says
// what is wrong and where.
func (p *Past) Check(ctx context.Context, each int, say func(string)) (*Audit, error) {
	if say == nil {
		say = func(string) {}
	}
	a := &Audit{}
	if err := p.checkOlder(ctx, a, say); err != nil {
		return nil, err
	}
	oldest, err := p.Oldest()
	if err != nil {
		return nil, err
	}
	w, err := p.travel(oldest)
	if err != nil {
		return nil, err
	}
	a.From, a.To = oldest, p.End()
	commands := 0
	see := func(e *fsm.Entry, s fsm.Step) error {
		if commands++; commands%max(each, 1) != 0 {
			return nil
		}
		a.Checked++
		if err := w.machine.Check(); err != nil {
			return fmt.Errorf("%w: after command %d of log entry %d in %s (%s): %w", ErrDamaged, s.Command+1, e.Index, p.dir,
				tell(e.Batches[s.Batch].Commands[s.Command]), err)
		}
		return nil
	}
	for _, b := range p.bases[1:] {
		if err := w.to(ctx, b.index, see); err != nil {
			return nil, err
		}
		if err := p.compare(w.machine, b); err != nil {
			return nil, err
		}
		a.Snapshots++
		say(fmt.Sprintf("snapshot %s is what the log leads to", b.name))
	}
	if err := w.to(ctx, p.End(), see); err != nil {
		return nil, err
	}
	if err := w.machine.Check(); err != nil {
		return nil, fmt.Errorf("%w: the state at entry %d is not consistent: %w", ErrDamaged, w.at, err)
	}
	a.Entries += int(w.at - oldest)
	a.Replayed = int(w.at - oldest)
	a.Digest = fmt.Sprintf("%x", w.machine.Digest())
	a.Stored, err = p.checkStored(ctx)
	switch {
	case errors.Is(err, errVaultInUse):
		say("stored responses are in use by a running replica: not looked at")
	case err != nil:
		return nil, err
	case a.Stored.Responses > 0:
		say(fmt.Sprintf("%d stored responses are whole and those of the last state", a.Stored.Responses))
	}
	return a, nil
}

// checkOlder reads the entries that no base is as old as.
func (p *Past) checkOlder(ctx context.Context, a *Audit, say func(string)) error {
	oldest, err := p.Oldest()
	if err != nil {
		oldest = p.End()
	}
	if oldest < p.info.FirstIndex {
		return nil
	}
	err = p.Log(ctx, Filter{To: oldest, Kind: "none"}, func(*Record) error { return nil })
	if err != nil {
		return err
	}
	a.Entries = int(min(oldest, p.info.LastIndex) - p.info.FirstIndex + 1)
	say(fmt.Sprintf("entries %d to %d can be read; no snapshot is as old as they are, so they are not replayed", p.info.FirstIndex, oldest))
	return nil
}

// compare refuses a snapshot that is not what the log leads to (I9).
func (p *Past) compare(m *fsm.Machine, b base) error {
	kept, err := p.restore(b)
	if err != nil {
		return err
	}
	if kept.Digest() != m.Digest() {
		return fmt.Errorf("%w: in %s, snapshot %s is not what the log leads to: digest %x, replayed %x; restore the directory from a backup",
			ErrDamaged, p.dir, b.name, kept.Digest(), m.Digest())
	}
	return nil
}
