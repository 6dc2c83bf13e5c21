package storage

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// logFile is the durable log and the few values raft keeps beside it.
type logFile interface {
	raft.LogStore
	raft.StableStore
	Close() error
}

// guard stands between raft and the log file. It keeps the first failed write from being followed by others, it tells
// when a write hangs, and it keeps more of the log than raft asks for (history.go).
type guard struct {
	logFile
	fail    func(error)
	history *history
	synced  func(time.Duration)               // told how long it took to write entries; nil = nobody is
	cutAt   func(keep uint64) (uint64, error) // where the log may begin if all from keep on stays; nil = at keep

	mu     sync.Mutex
	broken error     // the first failure; nothing is written any more
	under  int       // writes under way: raft's own, and behind one that hangs more and more others
	done   uint64    // writes that came back
	since  time.Time // when the last of them did, or when the first one under way began
}

func (g *guard) write(what string, fn func() error) error {
	if err := g.begin(); err != nil {
		return err
	}
	err := fn()
	g.end()
	if err != nil {
		return g.failed(fmt.Errorf("%s: %w", what, err))
	}
	return g.state() // a write that was given up as hanging and returned after all does not count
}

func (g *guard) begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken != nil {
		return g.broken
	}
	if g.under++; g.under == 1 {
		g.since = time.Now()
	}
	return nil
}

func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
	g.done++
	g.since = time.Now()
}

// stalled tells whether writes are under way and none has come back for a time, or none will any more.
func (g *guard) stalled(limit time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.under > 0 && time.Since(g.since) > limit || g.broken != nil
}

// progress is whether anything is under way, and how many writes came back so far.
func (g *guard) progress() (busy bool, done uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.under > 0, g.done
}

func (g *guard) state() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken
}

func (g *guard) failed(err error) error {
	g.mu.Lock()
	if g.broken == nil {
		g.broken = err
	}
	err = g.broken
	g.mu.Unlock()
	g.fail(err)
	return err
}

func (g *guard) StoreLog(l *raft.Log) error { return g.StoreLogs([]*raft.Log{l}) }

func (g *guard) StoreLogs(logs []*raft.Log) error {
	start := time.Now()
	err := g.write("write log.db", func() error { return g.logFile.StoreLogs(logs) })
	if err == nil {
		if g.synced != nil {
			g.synced(time.Since(start))
		}
		for _, l := range logs {
			g.history.add(l.Index, len(l.Data), l.AppendedAt)
		}
	}
	return err
}

func (g *guard) Set(key, value []byte) error {
	return g.write("write raft's state to log.db", func() error { return g.logFile.Set(key, value) })
}

// SetUint64 never returns an error for the term, because raft would panic. That is safe: after a failure nothing
// reaches the disk any more, neither a vote nor an entry of a term that was not recorded.
func (g *guard) SetUint64(key []byte, value uint64) error {
	err := g.write("write raft's state to log.db", func() error { return g.logFile.SetUint64(key, value) })
	if string(key) == "CurrentTerm" {
		return nil
	}
	return err
}

// deleteChunk is how many entries are deleted in one transaction, so that an append never waits long for compaction.
const deleteChunk = 256

// DeleteRange deletes from the low end in small steps if it compacts, keeping what belongs to history. What it takes
// off the high end (a follower that had entries of an old leader) goes at once, so that a crash leaves no hole.
func (g *guard) DeleteRange(low, high uint64) error {
	last, err := g.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	if high >= last {
		if err := g.write("truncate log.db", func() error { return g.logFile.DeleteRange(low, high) }); err != nil {
			return err
		}
		if first, err := g.FirstIndex(); err == nil && first == 0 {
			g.history.cut(high)
		}
		return nil
	}
	keep := min(g.history.keepFrom(last), high+1)
	if g.cutAt != nil {
		if keep, err = g.cutAt(keep); err != nil {
			return err
		}
	}
	high = keep - 1
	for ; low <= high; low += deleteChunk {
		to := min(low+deleteChunk-1, high)
		if err := g.write("compact log.db", func() error { return g.logFile.DeleteRange(low, to) }); err != nil {
			return err
		}
		g.history.cut(to)
	}
	return nil
}

var errHung = errors.New("the write does not return")

// watch fails the store when writes are under way and for longer than limit none comes back. It counts what it sees itself in steps of at most
// twice its interval, so that a process that was stopped for a while is not taken for a disk that hangs.
func (g *guard) watch(limit time.Duration, quit <-chan struct{}) {
	interval := limit / 20
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var seen uint64
	var lasted time.Duration
	last := time.Now()
	for {
		select {
		case <-quit:
			return
		case now := <-ticker.C:
			step := min(now.Sub(last), 2*interval)
			last = now
			busy, done := g.progress()
			if !busy || done != seen {
				seen, lasted = done, 0
				continue
			}
			if lasted += step; lasted > limit {
				_ = g.failed(fmt.Errorf("write log.db: %w (waited %v)", errHung, lasted.Round(time.Millisecond)))
				return
			}
		}
	}
}
