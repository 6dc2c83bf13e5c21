package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"iop/fsm"
)

// ErrDiverged says that the state of this replica is not that of the leader after the same entries.
var ErrDiverged = errors.New("the state of this replica differs from the leader's")

// checkEach is how many entries are between two digest checks.
const checkEach = 10_000

// dumpFile is where a replica that differs leaves its state.
const (
	dumpFile    = "diverged"
	stateSuffix = ".state"
)

// digests compares this replica's state with the leader's now and then. Every replica takes the digest of its state after
// the first command at or behind a multiple of checkEach; the leader logs its own; each compares when it meets that in
// the log. A digest is computed beside the applying, from an image of the state.
type digests struct {
	each     uint64
	cluster  func() string
	dir      string
	fail     func(error)
	computed func(fsm.DigestCheck) // told of each; the leader proposes it
	group    sync.WaitGroup

	mu     sync.Mutex
	before uint64 // index of the entry applied before; 0 = unknown
	own    map[uint64]*digested
	checks []fsm.DigestCheck // met before the own digest was ready
	marks  []*atMark         // asked for or met lately, the newest last: verify.go
}

// digested is a digest of this replica, and the state that it is of.
type digested struct {
	image  *fsm.Image
	digest [32]byte
	ready  bool
}

// applied takes an image if it is time. Call while the machine does not change.
func (d *digests) applied(index uint64, image func() *fsm.Image) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.before
	d.before = index
	if before == 0 || before/d.each == index/d.each {
		return
	}
	x := &digested{image: image()}
	for i := range d.own { // the last two are kept
		if i+2*d.each < index {
			delete(d.own, i)
		}
	}
	d.own[index] = x
	d.group.Go(func() { d.compute(index, x) })
}

// jumped tells that the state was replaced: the next entry may not be the one that other replicas take the digest at.
func (d *digests) jumped() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = 0
}

func (d *digests) compute(index uint64, x *digested) {
	sum := x.image.Digest()
	d.mu.Lock()
	x.digest, x.ready = sum, true
	var met []fsm.DigestCheck
	for _, c := range d.checks {
		if c.Index == index {
			met = append(met, c)
		}
	}
	d.checks = nil
	d.mu.Unlock()
	for _, c := range met {
		d.compare(c)
	}
	d.computed(fsm.DigestCheck{Index: index, Digest: sum})
}

// compare compares the leader's digest with the own one. Without an own one there is nothing to compare.
func (d *digests) compare(c fsm.DigestCheck) {
	d.mu.Lock()
	x := d.own[c.Index]
	if x != nil && !x.ready {
		d.checks = append(d.checks, c)
		x = nil
	}
	d.mu.Unlock()
	if x == nil || x.digest == c.Digest {
		return
	}
	path := filepath.Join(d.dir, fmt.Sprintf("%s-%d%s", dumpFile, c.Index, stateSuffix))
	err := fmt.Errorf("%w: after entry %d its digest is %x, the leader's %x", ErrDiverged, c.Index, x.digest, c.Digest)
	if dump := writeDump(path, d.cluster(), x.image); dump != nil {
		err = errors.Join(err, dump)
	} else {
		err = fmt.Errorf("%w; its state is in %s: report it with a copy of the directory, then begin with an empty directory under a new replica id", err, path)
	}
	d.fail(err)
}

// writeDump leaves a state in the form of a snapshot's.
func writeDump(path, cluster string, img *fsm.Image) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(writeImage(f, cluster, img), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
