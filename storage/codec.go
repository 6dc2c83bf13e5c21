package storage

import (
	"fmt"
	"io"

	"iop/fsm"
)

// The encoding of entries and states for those who feed a machine by another way than a Store: the simulator in
// e2e/sim, which stands in for consensus and replicas. They are the functions that the Store itself uses.

// EncodeEntry returns an entry as the log keeps it. Index is not part of it; the sum of each batch is that of its
// commands, whatever Batch.Sum says.
func EncodeEntry(e *fsm.Entry) []byte {
	r := record{term: e.Term, elapsed: e.Elapsed, wall: e.Wall}
	for i := range e.Batches {
		in := &e.Batches[i]
		b := &batch{lane: &lane{id: in.Session}, seq: in.Seq, ack: in.AckBelow}
		for _, c := range in.Commands {
			b.front.add(c, nil)
		}
		b.sum = commandSum(b.front.bytes)
		r.batches = append(r.batches, b)
	}
	return appendRecord(make([]byte, 0, r.sizeMax()), &r)
}

// DecodeEntry reads what EncodeEntry or a Store wrote; index and term are those of the log.
func DecodeEntry(index, term uint64, data []byte) (*fsm.Entry, error) {
	var d decoder
	e, err := d.entry(data)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", index, err)
	}
	e.Index, e.Term = index, term
	return e, nil
}

// EncodeState writes a state as a snapshot keeps it.
func EncodeState(w io.Writer, cluster string, img *fsm.Image) error {
	return writeImage(w, cluster, img)
}

// DecodeState reads what EncodeState or a Store wrote, after it verified the whole, and tells whose cluster's it is.
func DecodeState(r io.Reader) (cluster string, img *fsm.Image, err error) {
	return readImage(r)
}
