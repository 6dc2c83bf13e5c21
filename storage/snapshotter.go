package storage

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// When a snapshot is due: after so many entries or bytes, or after so long if there was any.
const (
	snapshotEntries = 16384
	snapshotBytes   = 64 << 20
	snapshotEvery   = 15 * time.Minute
	// closeEntries is how many entries make a snapshot worth while on the way out.
	closeEntries = 1000
	// snapshotPoll is how often it is looked whether one is due.
	snapshotPoll = 500 * time.Millisecond
	// snapshotRetry is how long a failed one is not tried again.
	snapshotRetry = 30 * time.Second
)

// snapshotter decides when to write snapshots.
type snapshotter struct {
	store *Store
	each  uint64
	quit  chan struct{}
	done  chan struct{}
	taken atomic.Uint64 // index of the newest
	count atomic.Uint64
	bytes uint64    // applied when the last one was taken
	at    time.Time // when that was
}

func (p *snapshotter) run() {
	defer close(p.done)
	ticker := time.NewTicker(snapshotPoll)
	defer ticker.Stop()
	p.at = time.Now()
	for {
		select {
		case <-p.quit:
			return
		case <-p.store.failed:
			return
		case <-ticker.C:
		}
		if !p.due() {
			continue
		}
		if err := p.take(); err != nil {
			p.store.logger.Error("snapshot failed, the log goes on growing", "error", err)
			p.at = time.Now().Add(snapshotRetry - snapshotEvery)
			select {
			case <-p.quit:
				return
			case <-time.After(snapshotRetry):
			}
		}
	}
}

func (p *snapshotter) due() bool {
	taken, applied := p.taken.Load(), p.store.replica.applied.Load()
	if applied <= taken {
		return false
	}
	return applied-taken >= p.each || p.store.replica.bytes.Load()-p.bytes >= snapshotBytes ||
		time.Since(p.at) >= snapshotEvery
}

// stop ends run; it returns when that is done, or ctx ends.
func (p *snapshotter) stop(ctx context.Context) error {
	close(p.quit)
	if p.store.Err() != nil {
		return nil // it may be held up by the disk
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the snapshot under way: %w", ctx.Err())
	}
}

// take writes a snapshot. It belongs to run, and to Close after stop.
func (p *snapshotter) take() error {
	start, bytes := time.Now(), p.store.replica.bytes.Load()
	if err := p.store.log.snapshot(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	p.bytes, p.at = bytes, time.Now()
	store := &snapStore{dir: p.store.dir.path}
	list, err := store.List()
	if err != nil {
		return err
	}
	for _, meta := range list {
		if meta.Index == p.taken.Load() { // there was nothing new
			break
		}
		p.taken.Store(meta.Index)
		p.count.Add(1)
		p.store.observe(Stat{
			Kind: StatSnapshot, Bytes: meta.Size, Took: time.Since(start),
			Capture: time.Duration(p.store.replica.captured.Load()),
		})
	}
	return nil
}
