package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"iop/fsm"
)

// Past is what log and snapshots of a data directory still tell: the commands of the log's tail, and the machine at
// every index from the oldest base on. A base is a snapshot that the log reaches back to, or the empty machine if the
// log begins at 1. It is safe for concurrent use.
type Past struct {
	dir     string
	cluster string
	info    Info
	log     pastLog
	bases   []base // by index
	release func() error
}

type base struct {
	index uint64 // of the log; 0 = the empty machine
	name  string // of the snapshot
}

// ErrUnreachable means that the history asked for is not kept any more, or not there yet.
var ErrUnreachable = errors.New("not in the history that is kept")

// OpenPast opens the directory of a stopped, crashed or copied replica without changing anything in it. That of a
// running one is refused with ErrLocked: its edge answers. Of a replica that is not alone in its cluster, the last
// entries may not be valid: only a majority decides that. The errors are those of Open.
func OpenPast(dir string) (*Past, error) {
	p, err := openPast(dir)
	if err != nil {
		return nil, fmt.Errorf("read history of %s: %w", dir, err)
	}
	return p, nil
}

func openPast(dir string) (_ *Past, err error) {
	id, err := readIdentity(dir)
	if err != nil {
		return nil, err
	}
	if id == nil {
		return nil, fmt.Errorf("%w: %s has no %s; name the directory that edge.data_dir of the edge names", ErrNotOurs, dir, identityFile)
	}
	p := &Past{dir: dir, cluster: id.Cluster}
	p.info = Info{Dir: dir, Cluster: id.Cluster, Replica: id.Replica, Program: id.Program, Format: id.Format}
	if id.State != stateReady && id.State != stateJoining {
		return nil, fmt.Errorf("%w: its first start was not finished, it holds nothing yet", ErrNotOurs)
	}
	lock, err := shareLock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, err
	}
	p.release = func() error { return releaseLock(lock) }
	snapshot, err := (&snapStore{dir: dir, cluster: id.Cluster}).newest()
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	log, err := openPastFile(dir, id, snapshot)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.log = log
	if err := p.look(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close lets the directory go.
func (p *Past) Close() error {
	var err error
	if p.log != nil {
		err = p.log.close()
	}
	if p.release != nil {
		err = errors.Join(err, p.release())
	}
	return err
}

// look finds out what there is.
func (p *Past) look() error {
	names, err := snapshotNames(p.dir)
	if err != nil {
		return err
	}
	if p.info.FirstIndex, p.info.LastIndex, err = p.log.bounds(); err != nil {
		return err
	}
	first := p.info.FirstIndex
	if n := len(names); n > 0 { // the leader's snapshot may have taken the log's place
		if newest, ok := snapshotIndex(names[0]); ok && newest > p.info.LastIndex {
			first, p.info.FirstIndex, p.info.LastIndex = newest+1, 0, 0
		}
	}
	if first == 1 {
		p.bases = append(p.bases, base{})
	}
	for i := len(names) - 1; i >= 0; i-- {
		index, ok := snapshotIndex(names[i])
		if !ok {
			return fmt.Errorf("%w: %s is not a snapshot's name; move it out of the way", ErrDamaged, filepath.Join(p.dir, snapshotsDir, names[i]))
		}
		if index+1 >= first {
			p.bases = append(p.bases, base{index: index, name: names[i]})
		}
		p.info.Snapshot, p.info.SnapshotIndex = names[i], index
	}
	return nil
}

// snapshotIndex reads the index in a snapshot's name.
func snapshotIndex(name string) (uint64, bool) {
	digits, _, ok := strings.Cut(name, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// Info tells whose directory it is and which part of the log it has. Term and Applied are not set.
func (p *Past) Info() Info { return p.info }

// Oldest returns the first index whose state can be told; ErrUnreachable if there is none.
func (p *Past) Oldest() (uint64, error) {
	if len(p.bases) == 0 {
		return 0, fmt.Errorf("%w: no snapshot is at or before an entry of the log in %s", ErrUnreachable, p.dir)
	}
	return p.bases[0].index, nil
}

// End returns the last index whose state can be told.
func (p *Past) End() uint64 { return max(p.info.LastIndex, p.info.SnapshotIndex) }

// At returns the machine after entry index; 0 = after the last.
func (p *Past) At(ctx context.Context, index uint64) (*fsm.Machine, error) {
	if index == 0 {
		index = p.End()
	}
	w, err := p.travel(index)
	if err != nil {
		return nil, err
	}
	if err := w.to(ctx, index, nil); err != nil {
		return nil, err
	}
	return w.machine, nil
}

// baseFor returns the newest base at or before index.
func (p *Past) baseFor(index uint64) (base, error) {
	oldest, err := p.Oldest()
	if err != nil {
		return base{}, err
	}
	if index < oldest || index > p.End() {
		return base{}, fmt.Errorf("%w: entry %d; %s tells the state from entry %d to %d", ErrUnreachable, index, p.dir, oldest, p.End())
	}
	i := sort.Search(len(p.bases), func(i int) bool { return p.bases[i].index > index })
	return p.bases[i-1], nil
}

// restore returns the machine of a base, verified.
func (p *Past) restore(b base) (*fsm.Machine, error) {
	if b.name == "" {
		return fsm.New(), nil
	}
	store := &snapStore{dir: p.dir}
	_, from, err := store.Open(b.name)
	if err != nil {
		return nil, store.wayOut(b.name, err)
	}
	r := &replica{cluster: func() string { return p.cluster }}
	if err := errors.Join(r.restore(from), from.Close()); err != nil {
		return nil, store.wayOut(b.name, err)
	}
	return r.machine, nil
}

// IndexAt returns the last entry whose wall stamp is not after t. Stamps are those of the leaders' clocks; if a clock
// was set back, it is the last such entry before the first later one.
func (p *Past) IndexAt(ctx context.Context, t time.Time) (uint64, error) {
	first, last := p.info.FirstIndex, p.info.LastIndex
	found := uint64(0)
	for low, high := first, last; low != 0 && low <= high; {
		middle := low + (high-low)/2
		at, wall, err := p.stampFrom(ctx, middle, high)
		switch {
		case err != nil:
			return 0, err
		case wall == 0 || wall > t.UnixNano():
			high = middle - 1
		default:
			found, low = at, at+1
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("%w: nothing is as old as %s; the log in %s begins with entry %d", ErrUnreachable, t.Format(time.RFC3339), p.dir, first)
	}
	return found, nil
}

// stampFrom returns the first command from … to and its wall stamp; 0 if there is none.
func (p *Past) stampFrom(ctx context.Context, from, to uint64) (index uint64, wall int64, err error) {
	err = p.log.each(from, to, func(r *rawEntry) error {
		if err := ctx.Err(); err != nil || !r.command {
			return err
		}
		var d decoder
		e, err := d.entry(r.data)
		if err != nil {
			return fmt.Errorf("log entry %d: %w", r.index, err)
		}
		index, wall = r.index, e.Wall
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return index, wall, err
}

var errFound = errors.New("found")

// Bases returns the indexes at which a state is kept.
func (p *Past) Bases() []uint64 {
	out := make([]uint64, 0, len(p.bases))
	for _, b := range p.bases {
		out = append(out, b.index)
	}
	return slices.Clip(out)
}
