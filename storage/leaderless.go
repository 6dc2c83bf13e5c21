package storage

import "iop/fsm"

// leaderless refuses what begins something from now on until there is a leader, and takes it out of what is queued and
// was never sent. It returns who has to be told. What ends something stays.
func (q *queue) leaderless() []Receiver {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusing {
		return nil
	}
	q.refusing = true
	var out []Receiver
	for _, l := range q.lanes {
		kept := l.queued[:0]
		for _, b := range l.queued {
			rest, refused := b.without(refusable)
			out = append(out, refused...)
			q.bytes += rest.queued - b.queued
			if rest.commands() > 0 {
				kept = append(kept, rest)
				continue
			}
			if b.hurry {
				q.hurried--
			}
			l.undelivered--
			q.undelivered--
		}
		clear(l.queued[len(kept):])
		l.queued = kept
	}
	lanes := q.lanes[:0]
	for _, l := range q.lanes {
		if l.listed = len(l.queued) > 0; l.listed {
			lanes = append(lanes, l)
		}
	}
	clear(q.lanes[len(lanes):])
	q.lanes = lanes
	q.settleDrains()
	return out
}

// without returns a batch that was never sent without some of its commands, and who proposed these.
func (b *batch) without(drop func(fsm.Command) bool) (*batch, []Receiver) {
	rest := &batch{lane: b.lane, since: b.since, hurry: b.hurry}
	var dropped []Receiver
	for _, p := range [...]part{b.front, b.back} {
		var d decoder
		decoded, err := d.commands(fsm.Batch{}, p.bytes)
		if err != nil {
			return b, nil // it can't be: it was encoded here
		}
		for i, c := range decoded.Commands {
			if drop(c) {
				dropped = append(dropped, p.to[i])
				continue
			}
			rest.queued += int64(rest.add(c, p.to[i]) + itemCost)
		}
	}
	if len(dropped) == 0 {
		return b, nil
	}
	return rest, dropped
}
