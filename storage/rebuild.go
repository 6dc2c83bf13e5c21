package storage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"iop/fsm"
)

// Rebuilt says what a directory was made of, and into what.
type Rebuilt struct {
	Dir      string       `json:"data_dir"`
	Replica  string       `json:"replica"` // its only voter
	Cluster  string       `json:"cluster"` // id, new
	Was      string       `json:"was"`     // id of the cluster that the state is of
	Index    uint64       `json:"index"`   // of the last entry that the state has
	Term     uint64       `json:"term"`
	Wall     time.Time    `json:"last_entry"` // stamp of that entry
	Sessions []fsm.EdgeID `json:"sessions_ended"`
	Leases   int          `json:"leases"`  // held when the state was taken; they end by the rules for a session that ended
	Waiters  int          `json:"waiters"` // detached; their clients find their places for the reattach window
	Members  []Member     `json:"members"` // of recover: those that the log named; "" = unknown
	Kept     string       `json:"kept"`    // of recover: where the old directory is now

	stored string // file with the stored responses; "" = there are none
}

// Restore makes an empty or missing directory that of a new cluster whose only voter is replica, with the state of a
// backup. The cluster gets a new id, so that no replica of the old one can mix with it. The sessions of the other edges
// are ended; that of an edge with the id of the replica ends when it opens its next. Errors: ErrDamaged, ErrNewer, or
// that the directory is not empty.
func Restore(backup io.Reader, dir, replica, program string) (*Rebuilt, error) {
	scratch, err := os.CreateTemp("", "iop-restore-*.db")
	if err != nil {
		return nil, fmt.Errorf("make a file for the stored responses: %w", err)
	}
	defer func() { _ = os.Remove(scratch.Name()) }()
	img, info, err := readBackup(bufio.NewReader(backup), scratch)
	if err = errors.Join(err, scratch.Close()); err != nil {
		return nil, fmt.Errorf("read backup: %w", err)
	}
	r := &Rebuilt{Dir: dir, Replica: replica, Was: info.Cluster, Members: []Member{}}
	if info.Stored > 0 {
		r.stored = scratch.Name()
	}
	if err := r.build(dir, program, img); err != nil {
		return nil, fmt.Errorf("restore into %s: %w", dir, err)
	}
	return r, nil
}

// build makes the directory. Its identity is written last: without it, nobody takes the rest for a data directory.
func (r *Rebuilt) build(dir, program string, img *fsm.Image) (err error) {
	if r.Replica == "" {
		return errors.New("no replica id given")
	}
	for _, d := range []string{dir, filepath.Join(dir, snapshotsDir)} {
		if err := mustHaveNothing(d); err != nil {
			return err
		}
		if err := makeDirectory(d); err != nil {
			return fmt.Errorf("make data directory: %w; choose a directory that can be written", err)
		}
	}
	lock, err := takeLock(filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	d := &directory{path: dir, lock: lock}
	defer func() { err = errors.Join(err, d.close()) }()
	if d.identity, err = mintIdentity(r.Replica, program); err != nil {
		return err
	}
	d.identity.State = stateReady
	r.Cluster = d.identity.Cluster
	if img, err = r.begin(img); err != nil {
		return err
	}
	if r.stored != "" {
		if err := r.store(d, img.Index); err != nil {
			return err
		}
	}
	name, err := r.snapshot(d, img)
	if err != nil {
		return err
	}
	if err := r.log(d, name, img.Term); err != nil {
		return err
	}
	return d.identity.write(dir)
}

// mustHaveNothing refuses a directory that holds anything but what a directory for data may have from the start.
func mustHaveNothing(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	for _, e := range entries {
		if name := e.Name(); name != lockFile && name != "lost+found" {
			return fmt.Errorf("%w: %s holds %q; choose an empty one, or move what is there out of the way", errNotEmpty, dir, name)
		}
	}
	return nil
}

// leap is by how much the new cluster is ahead in everything that is counted. What the old one gave out after the state was
// taken is not known here, but nodes may still hold it: a lease or a link of the new cluster must never be taken for it.
const leap = 1 << 20

// begin ends the sessions of the others, in an entry of its own: the first of the new cluster.
func (r *Rebuilt) begin(img *fsm.Image) (*fsm.Image, error) {
	m, err := fsm.Restore(img)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r.Index, r.Term, r.Wall = img.Index, img.Term, time.Unix(0, img.Wall).UTC()
	r.Leases, r.Waiters, r.Sessions = len(m.Leases()), m.Pending(), []fsm.EdgeID{}
	first := &fsm.Entry{Index: img.Index + leap, Term: max(img.Term, 1), Elapsed: m.Now(), Wall: img.Wall}
	batch := fsm.Batch{Sum: 1}
	m.EachSession(func(e fsm.EdgeID, id fsm.SessionID) {
		if string(e) == r.Replica {
			return
		}
		r.Sessions = append(r.Sessions, e)
		batch.Commands = append(batch.Commands, &fsm.EndSession{Edge: e, Session: id, Reason: fsm.ReasonSessionEnded})
	})
	if len(batch.Commands) > 0 {
		first.Batches = []fsm.Batch{batch}
	}
	m.Apply(first)
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("%w: the state is not consistent: %w", ErrDamaged, err)
	}
	next := m.Image()
	next.NextLease += leap
	for i := range next.Nodes {
		next.Nodes[i].Generation += leap
	}
	return next, nil
}

// store puts the stored responses in place, as those of the state after entry index.
func (r *Rebuilt) store(d *directory, index uint64) error {
	if err := copyStored(r.stored, d.file(vaultDB)); err != nil {
		return err
	}
	return sealVault(d.file(vaultDB), index)
}

// snapshot writes the state, with the replica as the only voter.
func (r *Rebuilt) snapshot(d *directory, img *fsm.Image) (string, error) {
	store := &snapStore{dir: d.path, cluster: r.Cluster}
	only := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(r.Replica), Address: raft.ServerAddress(r.Replica), Suffrage: raft.Voter}}}
	sink, err := store.Create(raft.SnapshotVersionMax, img.Index, img.Term, only, img.Index, nil)
	if err != nil {
		return "", err
	}
	if err := writeImage(sink, r.Cluster, img); err != nil {
		return "", errors.Join(err, sink.Cancel())
	}
	return sink.ID(), sink.Close()
}

// log makes an empty log that says that the snapshot took its place.
func (r *Rebuilt) log(d *directory, snapshot string, term uint64) (err error) {
	bolt, err := d.openLog()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	log := d.sealing(bolt)
	if err := d.identity.bind(log); err != nil {
		return err
	}
	if err := log.SetUint64([]byte("CurrentTerm"), term); err != nil {
		return fmt.Errorf("note the term: %w", err)
	}
	if err := log.Set([]byte(installedKey), []byte(snapshot)); err != nil {
		return fmt.Errorf("note the snapshot: %w", err)
	}
	return nil
}

// recovering is beside a directory while it is being recovered.
const recovering = ".recovering"

// Recover makes a stopped replica the only voter of a new cluster with its state, when the others are lost for good. All
// entries of its log are taken for valid; what others confirmed without it is lost. The directory as it was is kept
// beside it: Rebuilt.Kept.
func Recover(ctx context.Context, dir, program string) (*Rebuilt, error) {
	dir = filepath.Clean(dir)
	scratch, err := os.MkdirTemp("", "iop-recover-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the stored responses: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	r, img, err := survivor(ctx, dir, scratch)
	if err != nil {
		return nil, fmt.Errorf("recover %s: %w", dir, err)
	}
	if err := r.replace(dir, program, img); err != nil {
		return nil, fmt.Errorf("recover %s: %w", dir, err)
	}
	return r, nil
}

// survivor reads what a replica has.
func survivor(ctx context.Context, dir, scratch string) (r *Rebuilt, img *fsm.Image, err error) {
	p, err := openPast(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if id, err := readIdentity(dir); err != nil || id.State == stateJoining {
		return nil, nil, errors.Join(err, errors.New("this replica never had all of its cluster's state; recover another one, or restore a backup"))
	}
	m, err := p.At(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	r = &Rebuilt{Dir: dir, Replica: p.info.Replica, Was: p.cluster}
	r.Members, err = namedMembers(dir, p)
	if err == nil && len(m.Responses()) > 0 {
		r.stored, err = p.exportStored(ctx, scratch)
	}
	img = m.Image()
	img.Index = max(img.Index, p.End()) // raft's own entries count
	return r, img, err
}

// namedMembers returns the members that the end of the log, or else the newest snapshot, names.
func namedMembers(dir string, p *Past) (members []Member, err error) {
	id, err := readIdentity(dir)
	if err != nil {
		return nil, err
	}
	bolt, err := readLog(filepath.Join(dir, logDB))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	log := id.sealing(dir, bolt)
	for i := p.info.LastIndex; i >= p.info.FirstIndex && i > 0; i-- {
		var l raft.Log
		if err := log.GetLog(i, &l); err != nil {
			return nil, fmt.Errorf("read log entry %d: %w", i, err)
		}
		if l.Type == raft.LogConfiguration {
			return membersOf(raft.DecodeConfiguration(l.Data)), nil
		}
	}
	list, err := (&snapStore{dir: dir}).List()
	if err != nil || len(list) == 0 {
		return []Member{}, err
	}
	return membersOf(list[0].Configuration), nil
}

// replace builds the new directory beside the old one, and exchanges them.
func (r *Rebuilt) replace(dir, program string, img *fsm.Image) error {
	next := dir + recovering
	if err := os.RemoveAll(next); err != nil { // of an attempt that was interrupted
		return fmt.Errorf("remove what an interrupted attempt left: %w", err)
	}
	if err := r.build(next, program, img); err != nil {
		return err
	}
	r.Kept = fmt.Sprintf("%s.before-recover-%d", dir, r.Index)
	if _, err := os.Lstat(r.Kept); err == nil {
		return fmt.Errorf("%s is in the way, of an earlier attempt: move it elsewhere", r.Kept)
	}
	if err := os.Rename(dir, r.Kept); err != nil {
		return fmt.Errorf("%w; if the directory is a mount point, copy it to another place and recover the copy", err)
	}
	if err := os.Rename(next, dir); err != nil {
		return errors.Join(err, os.Rename(r.Kept, dir))
	}
	return syncDir(filepath.Dir(dir))
}
