package storage

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"iop/fsm"
)

// foreignBytesMax bounds what other replicas have queued here.
const foreignBytesMax = queueBytesMax

// Batches on their way to the leader are fields 6 of an Entry without the rest of it:
//
//	0x32 len | batch | 0x32 len | batch | …
func appendBatches(b []byte, batches []*batch) []byte {
	for _, x := range batches {
		b = appendBatch(b, x)
	}
	return b
}

// appendBatch appends a batch as field 6 of an Entry.
func appendBatch(b []byte, x *batch) []byte {
	b = protowire.AppendTag(b, 6, bytesType)
	if x.foreign != nil {
		b = protowire.AppendVarint(b, uint64(len(x.foreign)))
		return append(b, x.foreign...)
	}
	b = protowire.AppendVarint(b, uint64(x.headerSize()+x.size()))
	b = x.appendHeader(b)
	b = append(b, x.front.bytes...)
	return append(b, x.back.bytes...)
}

// readBatches takes apart what appendBatches put together. Everything is read to its end, because what one replica can't
// apply would stop all of them.
func readBatches(data []byte, top uint32) ([]*batch, error) {
	var d decoder
	var out []*batch
	f := fields{rest: data}
	for f.next() {
		if f.number != 6 {
			return nil, fmt.Errorf("field %d where a batch should be", f.number)
		}
		raw := f.bytes()
		decoded, err := d.batch(raw)
		if err != nil {
			return nil, fmt.Errorf("batch %d: %w", len(out), err)
		}
		x := &batch{foreign: raw, count: len(decoded.Commands)}
		for _, c := range decoded.Commands {
			if _, ok := c.(*fsm.Expire); ok {
				return nil, errors.New("it holds what only the leader proposes")
			}
			x.front.level = max(x.front.level, levelOf(c))
		}
		if x.front.level > top {
			return nil, fmt.Errorf("it needs feature level %d, the cluster has %d", x.front.level, top)
		}
		out = append(out, x)
	}
	return out, f.err
}

// Forwarded takes batches that another replica sent over a Lane; they keep their order. data belongs to the store from
// now on. It never blocks.
func (s *Store) Forwarded(data []byte) Verdict {
	if !s.leads() {
		return VerdictNotLeader
	}
	batches, err := readBatches(data, s.replica.level.Load())
	if err != nil {
		s.logger.Error("another replica sent batches that can't be read", "error", err)
		return VerdictNotLeader
	}
	if !s.queue.putForeign(batches) {
		return VerdictOverloaded
	}
	return VerdictAccepted
}

// putForeign queues batches of another replica, all or none.
func (q *queue) putForeign(batches []*batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := int64(0)
	for _, b := range batches {
		size += int64(len(b.foreign))
	}
	if q.closed != nil || q.foreignBytes > 0 && q.foreignBytes+size > foreignBytesMax {
		return false
	}
	now := q.clock()
	for _, b := range batches {
		b.since = now
	}
	q.foreignBytes += size
	q.foreign = append(q.foreign, batches...)
	q.wake()
	return true
}
