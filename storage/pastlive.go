package storage

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/hashicorp/raft"
)

// Past returns what the log and the snapshots of this running store tell. It holds up nobody: each entry is read in a
// short transaction of its own, which no write waits for. What compaction removes meanwhile is missing for the reader,
// who is told so.
func (s *Store) Past() (*Past, error) {
	p := &Past{
		dir: s.dir.path, cluster: s.dir.identity.Cluster, log: pastLive{s.guard},
		info: Info{
			Dir: s.dir.path, Cluster: s.dir.identity.Cluster, Replica: s.dir.identity.Replica,
			Program: s.dir.identity.Program, Format: s.dir.identity.Format,
		},
	}
	if err := p.look(); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	p.info.LastIndex = min(p.info.LastIndex, s.replica.applied.Load()) // what is behind it is not decided yet
	return p, nil
}

type pastLive struct{ logFile }

func (l pastLive) bounds() (first, last uint64, err error) {
	if first, err = l.FirstIndex(); err == nil {
		last, err = l.LastIndex()
	}
	return first, last, err
}

// liveBreath is after how many entries a reader lets others go first.
const liveBreath = 64

func (l pastLive) each(from, to uint64, fn func(*rawEntry) error) error {
	var r rawEntry
	for i := from; i <= to; i++ {
		var entry raft.Log
		if err := l.GetLog(i, &entry); err != nil {
			if errors.Is(err, raft.ErrLogNotFound) {
				return fmt.Errorf("%w: log entry %d was removed meanwhile; ask again", ErrUnreachable, i)
			}
			return fmt.Errorf("read log entry %d: %w", i, err)
		}
		r.take(&entry)
		if err := fn(&r); err != nil {
			return err
		}
		if i%liveBreath == 0 {
			runtime.Gosched()
		}
	}
	return nil
}

func (pastLive) close() error { return nil }
