package storage

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"iop/fsm"
	"iop/proto/recordpb"
)

// The state of a snapshot:
//
//	+----------+--------+-----+-----+- … -+-----+----------+
//	| iopstate | header | row | row |     | end | SHA-256  |
//	| 8 bytes  |        |     |     |     |     | 32 bytes |
//	+----------+--------+-----+-----+- … -+-----+----------+
//
// The header (SnapshotHeader) and each row (Row) are a varint length and a message of proto/recordpb/record.proto; the
// kinds of rows come in the order of their numbers, the rows of a kind in order of their key. The hash covers all bytes
// before it and is compared before anything is decoded. In a file it follows a few lines for raft: snapstore.go.
const (
	stateMagic     = "iopstate"
	snapshotFormat = 1
	// snapshotBytesMax bounds what is read into memory; 100,000 waiters take about 20 MiB.
	snapshotBytesMax = 1 << 30
)

// writeImage writes the state of a snapshot.
func writeImage(to io.Writer, cluster string, img *fsm.Image) error {
	w := newFrameWriter(to)
	w.raw([]byte(stateMagic))
	w.frame(&recordpb.SnapshotHeader{
		Format: snapshotFormat, Level: max(img.Level, fsm.LevelFirst), Cluster: []byte(cluster),
		Index: img.Index, Term: img.Term, Now: int64(img.Now), Wall: img.Wall,
		Revision: uint64(img.Revision), LastSession: uint64(img.LastSession), NextLease: uint64(img.NextLease), NextEnqueue: uint64(img.NextEnqueue),
		Granted: img.Granted, Returned: img.Returned, Raised: img.Level, Checked: img.Checked,
		LastTurn: img.LastTurn, Metered: img.Metered, LastOrder: img.LastOrder,
	})
	rows := uint64(0)
	eachRow(img, func(r *recordpb.Row) {
		w.frame(r)
		rows++
	})
	w.frame(&recordpb.Row{Kind: &recordpb.Row_End_{End: &recordpb.Row_End{Rows: rows}}})
	return w.finish()
}

type frameWriter struct {
	to   *bufio.Writer
	hash hash.Hash
	buf  []byte
	err  error
}

func newFrameWriter(to io.Writer) *frameWriter {
	h := sha256.New()
	return &frameWriter{to: bufio.NewWriterSize(io.MultiWriter(to, h), 64<<10), hash: h}
}

func (w *frameWriter) raw(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
}

func (w *frameWriter) frame(m proto.Message) {
	if w.err != nil {
		return
	}
	options := proto.MarshalOptions{Deterministic: true}
	size := options.Size(m)
	w.buf = protowire.AppendVarint(w.buf[:0], uint64(size))
	if w.buf, w.err = options.MarshalAppend(w.buf, m); w.err == nil {
		w.raw(w.buf)
	}
}

// finish writes the hash, which does not cover itself.
func (w *frameWriter) finish() error {
	if w.err == nil {
		w.err = w.to.Flush()
	}
	if w.err == nil {
		w.raw(w.hash.Sum(nil))
	}
	if w.err == nil {
		w.err = w.to.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("write snapshot: %w", w.err)
	}
	return nil
}

// readImage reads the state of a snapshot and the id of its cluster. It verifies the whole before it decodes any.
func readImage(from io.Reader) (string, *fsm.Image, error) {
	b, err := io.ReadAll(io.LimitReader(from, snapshotBytesMax+1))
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("read snapshot: %w", err)
	case len(b) > snapshotBytesMax:
		return "", nil, fmt.Errorf("snapshot is larger than %d bytes", snapshotBytesMax)
	}
	return decodeImage(b)
}

func decodeImage(b []byte) (string, *fsm.Image, error) {
	if len(b) < len(stateMagic)+sha256.Size || string(b[:len(stateMagic)]) != stateMagic {
		return "", nil, fmt.Errorf("%w: no state of a snapshot, or cut off", ErrDamaged)
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if actual := sha256.Sum256(body); !bytes.Equal(actual[:], sum) {
		return "", nil, fmt.Errorf("%w: the snapshot's SHA-256 does not match its content", ErrDamaged)
	}
	r := frameReader{rest: body[len(stateMagic):]}
	var h recordpb.SnapshotHeader
	if err := r.header(&h); err != nil {
		return "", nil, fmt.Errorf("snapshot header: %w", err)
	}
	img := &fsm.Image{
		Index: h.GetIndex(), Term: h.GetTerm(), Now: fsm.Time(h.GetNow()), Wall: h.GetWall(),
		Revision: fsm.Revision(h.GetRevision()), NextLease: fsm.LeaseID(h.GetNextLease()),
		LastSession: fsm.SessionID(h.GetLastSession()),
		NextEnqueue: fsm.Enqueue(h.GetNextEnqueue()), Granted: h.GetGranted(), Returned: h.GetReturned(),
		Level: h.GetRaised(), Checked: h.GetChecked(), LastTurn: h.GetLastTurn(), Metered: h.GetMetered(), LastOrder: h.GetLastOrder(),
	}
	for n := uint64(0); ; n++ {
		var row recordpb.Row
		if err := r.next(&row); err != nil {
			return "", nil, fmt.Errorf("snapshot row %d: %w", n, err)
		}
		if end := row.GetEnd(); end != nil {
			if end.GetRows() != n || len(r.rest) > 0 {
				return "", nil, fmt.Errorf("%w: the snapshot does not have the rows that it names", ErrDamaged)
			}
			return string(h.GetCluster()), img, nil
		}
		if err := addRow(img, &row); err != nil {
			return "", nil, fmt.Errorf("snapshot row %d: %w", n, err)
		}
	}
}

type frameReader struct{ rest []byte }

func (r *frameReader) take() ([]byte, error) {
	b, n := protowire.ConsumeBytes(r.rest)
	if n < 0 {
		return nil, errTruncated
	}
	r.rest = r.rest[n:]
	return b, nil
}

func (r *frameReader) next(m proto.Message) error {
	b, err := r.take()
	if err != nil {
		return err
	}
	return unmarshal(b, m)
}

// header looks at the format before it decodes the rest.
func (r *frameReader) header(h *recordpb.SnapshotHeader) error {
	b, err := r.take()
	if err != nil {
		return err
	}
	f := fields{rest: b}
	if !f.next() || f.number != 1 || f.uint() == 0 {
		return errors.New("it does not begin with its format")
	}
	if f.num != snapshotFormat {
		return fmt.Errorf("%w: snapshot format %d, this version reads %d", ErrNewer, f.num, snapshotFormat)
	}
	if err := unmarshal(b, h); err != nil {
		return err
	}
	if h.GetLevel() > levelMax {
		return fmt.Errorf("%w: snapshot of feature level %d, this version knows %d", ErrNewer, h.GetLevel(), levelMax)
	}
	return nil
}
