package storage

import (
	"errors"
	"log/slog"
	"time"
)

// Options say what to open. Dir and Replica are needed.
type Options struct {
	Dir     string       // data directory; made if it does not exist
	Replica string       // id of this replica, from its configuration; the directory is bound to it
	Version string       // of the program, kept in the directory for people
	Logger  *slog.Logger // nil = silent
	Observe func(Stat)   // called after each entry and snapshot; must not block; nil = nobody

	// History is how much of the log stays after a snapshot; the zero value is DefaultHistory.
	History History

	// Cluster is how to reach other replicas; nil = this one is alone.
	Cluster *Cluster

	// hooks of tests
	wrap         func(logFile) logFile
	hungAfter    time.Duration // 0 = hungWrite
	snapshotEach uint64        // entries; 0 = snapshotEntries
	keepEntries  uint64        // 0 = historyEntriesMin
	checkEach    uint64        // entries; 0 = checkEach
}

// History bounds how much of the log is kept for looking back. At least historyEntriesMin entries stay anyway.
type History struct {
	MaxBytes int64         // 0 = as DefaultHistory
	MaxAge   time.Duration // 0 = as DefaultHistory
}

// DefaultHistory is what is kept unless the configuration says otherwise: 256 MiB, a day.
func DefaultHistory() History { return History{MaxBytes: 256 << 20, MaxAge: 24 * time.Hour} }

func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("no data directory given")
	}
	if o.Replica == "" {
		return o, errors.New("no replica id given")
	}
	if o.Cluster != nil && (o.Cluster.Address == "" || o.Cluster.Network == nil) {
		return o, errors.New("a replica that can have others needs an address and a network")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	standard := DefaultHistory()
	if o.History.MaxBytes <= 0 {
		o.History.MaxBytes = standard.MaxBytes
	}
	if o.History.MaxAge <= 0 {
		o.History.MaxAge = standard.MaxAge
	}
	if o.hungAfter == 0 {
		o.hungAfter = hungWrite
	}
	if o.snapshotEach == 0 {
		o.snapshotEach = snapshotEntries
	}
	if o.checkEach == 0 {
		o.checkEach = checkEach
	}
	if o.keepEntries == 0 {
		o.keepEntries = historyEntriesMin
	}
	return o, nil
}
