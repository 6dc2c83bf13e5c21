package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// copyTries is how often a copy is begun anew because the replica wrote meanwhile.
const copyTries = 20

// CopyPast copies the directory of a running replica for OpenPast, into an empty directory. It takes no lock and stops
// nobody: it reads the files as they are, verifies every page and every checksum of the copy, and begins again if the
// replica wrote in between. A replica that writes all the time leaves no gap for that: then it gives up with ErrLocked.
func CopyPast(ctx context.Context, dir, into string) error {
	id, err := readIdentity(dir)
	if err != nil {
		return err
	}
	if id == nil {
		return fmt.Errorf("%w: %s has no %s; name the directory that edge.data_dir of the edge names", ErrNotOurs, dir, identityFile)
	}
	if err := id.write(into); err != nil {
		return err
	}
	for try := range copyTries {
		if err = copyOnce(dir, into); err == nil {
			err = wholeCopy(ctx, into)
		}
		if err == nil || ctx.Err() != nil || !errors.Is(err, ErrDamaged) && !errors.Is(err, os.ErrNotExist) {
			break
		}
		select {
		case <-time.After(time.Duration(try) * 10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if err == nil || !errors.Is(err, ErrDamaged) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w and written to all the time: no consistent copy of %s could be taken (%w)", ErrLocked, dir, err)
}

// copyOnce copies the snapshots first: then the log reaches at least as far.
func copyOnce(dir, into string) error {
	if err := os.RemoveAll(filepath.Join(into, snapshotsDir)); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	if err := os.Mkdir(filepath.Join(into, snapshotsDir), 0o700); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	names, err := snapshotNames(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(dir, snapshotsDir, name), filepath.Join(into, snapshotsDir, name)); err != nil {
			return err
		}
	}
	return copyFile(filepath.Join(dir, logDB), filepath.Join(into, logDB))
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

// wholeCopy reads every entry of a copy, with its checksum.
func wholeCopy(ctx context.Context, dir string) error {
	p, err := openPast(dir)
	if err != nil {
		return err
	}
	err = p.log.each(p.info.FirstIndex, p.info.LastIndex, func(*rawEntry) error { return ctx.Err() })
	return errors.Join(err, p.Close())
}

// ReplicaOf tells whose data directory it is, also while the replica runs.
func ReplicaOf(dir string) (replica string, err error) {
	id, err := readIdentity(dir)
	if err != nil {
		return "", err
	}
	if id == nil {
		return "", fmt.Errorf("%w: %s has no %s; name the directory that edge.data_dir of the edge names", ErrNotOurs, dir, identityFile)
	}
	return id.Replica, nil
}
