package storage

import (
	"context"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"iop/fsm"
)

// Applied is a command of the log that offers a configuration. Whether it was accepted is not said here: fsm.ApplyConfig.Next
// tells it of one revision after the other.
type Applied struct {
	Index   uint64 // of the log
	Time    time.Time
	Command *fsm.ApplyConfig
}

// Applied returns the configurations that the entries from … to offered, in order. Nothing is replayed, and only those
// entries are decoded that hold one. It is an ErrUnreachable if one of the entries is not kept any more.
func (p *Past) Applied(ctx context.Context, from, to uint64) (list []Applied, err error) {
	from, to = max(from, p.info.FirstIndex), min(to, p.info.LastIndex)
	if p.info.FirstIndex == 0 || from > to {
		return nil, nil
	}
	var d decoder
	err = p.log.each(from, to, func(r *rawEntry) error {
		if r.index%appliedEach == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !r.command || !holdsKind(r.data, kindApplyConfig) {
			return nil
		}
		e, err := d.entry(r.data)
		if err != nil {
			return p.badEntry(r.index, err)
		}
		for i := range e.Batches {
			for _, c := range e.Batches[i].Commands {
				if c, ok := c.(*fsm.ApplyConfig); ok {
					list = append(list, Applied{Index: r.index, Time: wallTime(e.Wall), Command: c})
				}
			}
		}
		return nil
	})
	return list, err
}

// appliedEach is after how many entries it is looked whether the reader has left.
const appliedEach = 256

// First returns the first command of the log at or after an entry, and when it was written; 0 if there is none.
func (p *Past) First(ctx context.Context, from uint64) (index uint64, at time.Time, err error) {
	if p.info.FirstIndex == 0 {
		return 0, time.Time{}, nil
	}
	index, wall, err := p.stampFrom(ctx, max(from, p.info.FirstIndex), p.info.LastIndex)
	return index, wallTime(wall), err
}

// holdsKind tells whether an encoded entry has a command of a kind. It looks at the frames only. Of what it can't read it
// says yes: the decoder says what is wrong.
func holdsKind(data []byte, kind protowire.Number) bool {
	entry := fields{rest: data}
	for entry.next() {
		if entry.number != 6 {
			continue
		}
		batch := fields{rest: entry.bytes()}
		for batch.next() {
			if batch.number != 5 {
				continue
			}
			command := fields{rest: batch.bytes()}
			if command.next() && command.number == kind {
				return true
			}
			if command.err != nil {
				return true
			}
		}
		if batch.err != nil {
			return true
		}
	}
	return entry.err != nil
}
