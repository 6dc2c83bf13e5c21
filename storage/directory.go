package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// A data directory:
//
//	lock            held by the process that has the directory open
//	identity.json   identity.go
//	log.db          bbolt: raft's log and its term and vote, with checksums: seal.go
//	responses.db    bbolt: payloads of stored responses: vault.go; not there before the first one
//	snapshots/      INDEX-TERM.snap, the newest three and some older ones that the log reaches back to: snapstore.go, bases.go
//	*.tmp           of a write that a crash interrupted; removed at the next start
const (
	lockFile        = "lock"
	identityFile    = "identity.json"
	logDB           = "log.db"
	snapshotsDir    = "snapshots"
	temporarySuffix = ".tmp"
)

// logMapped is how much of the log's file is mapped from the start, so that it seldom has to be mapped anew, for which
// all readers are waited for.
const logMapped = 512 << 20

// directory is a data directory that this process holds.
type directory struct {
	path     string
	lock     *os.File
	identity *identity
	fresh    bool // nothing was ever acknowledged from it

	mu sync.Mutex // of identity's Cluster and State, which a first start with peers settles while others ask
}

// openDirectory takes the directory and finds out what it is; it makes a new one if there is nothing.
func openDirectory(path, replica, program string) (*directory, error) {
	for _, dir := range []string{path, filepath.Join(path, snapshotsDir)} {
		if err := makeDirectory(dir); err != nil {
			return nil, fmt.Errorf("make data directory: %w; choose a directory that can be written", err)
		}
	}
	lock, err := takeLock(filepath.Join(path, lockFile))
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, lock: lock}
	if err := d.identify(replica, program); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *directory) close() error { return releaseLock(d.lock) }

func (d *directory) identify(replica, program string) error {
	id, err := readIdentity(d.path)
	if err != nil {
		return err
	}
	if id == nil {
		if err := d.mustBeEmpty(); err != nil {
			return err
		}
		if id, err = mintIdentity(replica, program); err != nil {
			return err
		}
		if err := id.write(d.path); err != nil {
			return err
		}
	}
	if err := id.belongs(d.path, replica); err != nil {
		return err
	}
	d.identity, d.fresh = id, id.State == stateNew || id.State == stateForming
	if err := d.sweep(); err != nil {
		return err
	}
	if d.fresh {
		return nil
	}
	if _, err := os.Stat(d.file(logDB)); err != nil {
		return fmt.Errorf("%w: %s is missing (%w); restore the directory from a backup. To begin anew and lose all state, remove the whole directory",
			ErrDamaged, d.file(logDB), err)
	}
	if id.Program != program {
		id.Program = program
		return id.write(d.path)
	}
	return nil
}

// mustBeEmpty refuses a directory without an identity that holds anything.
func (d *directory) mustBeEmpty() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == lockFile, name == snapshotsDir && d.noSnapshots(), name == identityFile+temporarySuffix:
		case name == logDB, name == snapshotsDir:
			return fmt.Errorf("%w: %s has a %s but no %s; restore it from a backup", ErrDamaged, d.path, name, identityFile)
		default:
			return fmt.Errorf("%w: %s holds %q; choose an empty directory", ErrNotOurs, d.path, name)
		}
	}
	return nil
}

func (d *directory) noSnapshots() bool {
	entries, err := os.ReadDir(d.file(snapshotsDir))
	return err == nil && len(entries) == 0
}

// sweep removes what a crash left half-written, and the log of a first start that was not finished.
func (d *directory) sweep() error {
	for _, dir := range []string{d.path, d.file(snapshotsDir)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("read data directory: %w", err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), temporarySuffix) {
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return fmt.Errorf("remove what a crash left: %w", err)
				}
			}
		}
	}
	if !d.fresh {
		return nil
	}
	if !d.noSnapshots() {
		return fmt.Errorf("%w: %s has snapshots but its first start was never finished; restore it from a backup", ErrDamaged, d.path)
	}
	if last, err := d.unfinished(); err != nil || last > firstStartEntries {
		return errors.Join(err, fmt.Errorf("%w: %s says that the first start was never finished, but %s ends at entry %d; put the right %s back, or restore the directory from a backup",
			ErrDamaged, d.file(identityFile), d.file(logDB), last, identityFile))
	}
	if err := os.Remove(d.file(logDB)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("begin the first start again: %w", err)
	}
	return nil
}

// firstStartEntries is how many entries the log has when the first start is finished: one that names the members.
const firstStartEntries = 1

// unfinished returns where the log of a first start that was interrupted ends; 0 if there is none, or none that was
// written to its end: a log that was in use has no reason to be torn.
func (d *directory) unfinished() (last uint64, err error) {
	if err := verifyPages(d.file(logDB)); err != nil {
		return 0, nil
	}
	log, err := readLog(d.file(logDB))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return log.LastIndex()
}

// makeDirectory makes a directory and what leads to it, durably: else a crash could take it away with all that was
// synced in it.
func makeDirectory(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeDirectory(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is not a directory", path))
	}
	return syncDir(parent)
}

// ready notes that the first start is finished.
func (d *directory) ready() error { return d.become(d.identity.Cluster, stateReady) }

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

// openLog opens the log for writing; every write is synced.
func (d *directory) openLog() (*raftboltdb.BoltStore, error) {
	b, err := raftboltdb.New(raftboltdb.Options{
		Path: d.file(logDB),
		BoltOptions: &bbolt.Options{
			Timeout:         time.Second,
			NoFreelistSync:  true, // else every write also writes the list of free pages
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mapped(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w; if the file is damaged, restore the directory from a backup", d.file(logDB), err)
	}
	if err := syncDir(d.path); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// sealing returns the log as this directory's format wants it.
func (d *directory) sealing(log logFile) logFile { return d.identity.sealing(d.path, log) }

func (id *identity) sealing(dir string, log logFile) logFile {
	if id.Format < sealedFormat {
		return log
	}
	return &sealed{logFile: log, path: filepath.Join(dir, logDB)}
}

// readLog opens a log that was verified, without changing it.
func readLog(path string) (*raftboltdb.BoltStore, error) {
	log, err := raftboltdb.New(raftboltdb.Options{
		Path: path, BoltOptions: &bbolt.Options{ReadOnly: true, Timeout: time.Second},
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return log, nil
}

// mapped is logMapped where mapping more than there is costs nothing.
func mapped() int {
	if runtime.GOOS == "windows" { // there, the file would get as large as the map
		return 0
	}
	return logMapped
}

// syncDir makes a rename or a new file in the directory durable.
func syncDir(path string) error {
	if runtime.GOOS == "windows" { // directories can't be synced there
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, err)
	}
	return nil
}

// snapshotNames returns the snapshot files, the newest first.
func snapshotNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, snapshotsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), snapshotSuffix) {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out, nil
}
