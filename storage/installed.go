package storage

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
)

// A snapshot that comes from the leader, because this replica is further behind than the leader's log reaches, takes the
// place of the log: entries would be missing between the two. Before the snapshot gets its name, the log notes which one
// it is; so a crash before the old log is gone is told from a log that was put back from an old backup.

// installedKey is where the log names the snapshot that took its place.
const installedKey = "iop.installed"

// installed returns the name of the snapshot that took the log's place last; "" = none did.
func installed(log raft.StableStore) string {
	name, err := log.Get([]byte(installedKey))
	if err != nil {
		return ""
	}
	return string(name)
}

// outdated tells whether a snapshot that is about to get its name is from the leader: the log does not reach it.
func (s *snapStore) outdated(index, term uint64) (bool, error) {
	if s.log == nil {
		return false, nil
	}
	last, err := s.log.LastIndex()
	if err != nil {
		return false, fmt.Errorf("read the log: %w", err)
	}
	if last < index {
		return true, nil
	}
	var l raft.Log
	if err := s.log.GetLog(index, &l); err == nil && l.Term != term {
		return false, fmt.Errorf("%w: snapshot and log are of different histories at entry %d", ErrDamaged, index)
	}
	return false, nil
}

// unpack puts the stored responses that came behind a snapshot of the leader in the place of the own ones. It comes first:
// if the snapshot is not put in place after all, the log goes on from where the own state is, and what it would write is
// known.
func (s *snapStore) unpack(temporary string) error {
	stored := filepath.Join(s.dir, vaultDB+temporarySuffix)
	found, err := splitVault(temporary, stored)
	if err != nil || !found {
		return err
	}
	return s.vault.replace(stored)
}

// install verifies the leader's snapshot, written to a temporary file, and has the log name it.
func (s *snapStore) install(temporary, name string) error {
	f, err := os.Open(temporary)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, _, err := readSnapshotHead(f); err != nil {
		return err
	}
	cluster, _, err := readImage(io.Reader(f))
	if err == nil && s.cluster != "" && cluster != s.cluster {
		err = fmt.Errorf("%w: it is of cluster %s, this replica of cluster %s", ErrDamaged, cluster, s.cluster)
	}
	if err != nil {
		return fmt.Errorf("snapshot of the leader: %w", err)
	}
	if err := s.log.Set([]byte(installedKey), []byte(name)); err != nil {
		return fmt.Errorf("note the leader's snapshot: %w", err)
	}
	return nil
}

// replaceLog removes the log that a snapshot took the place of.
func replaceLog(log raft.LogStore) error {
	first, err := log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	last, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	if last == 0 {
		return nil
	}
	if err := log.DeleteRange(first, last); err != nil {
		return fmt.Errorf("remove the log that the leader's snapshot replaces: %w", err)
	}
	return nil
}
