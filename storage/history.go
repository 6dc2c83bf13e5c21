package storage

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// historyEntriesMin is how many entries stay in the log whatever their size and age.
	historyEntriesMin = 1000
	// markEach is how many entries a mark covers.
	markEach = 64
)

// history knows roughly how large and how old the log's entries are, so that compaction can keep as much as Options
// allow. It is a list of marks, one per markEach entries.
type history struct {
	limit History
	least uint64 // entries that stay anyway

	mu    sync.Mutex
	marks []mark
	bytes int64 // in all marks
}

type mark struct {
	last  uint64 // index of its last entry
	bytes int64
	count int
	at    time.Time // when its last entry was appended
}

// entryOverhead is what the file needs for an entry beside its data.
const entryOverhead = 64

func (h *history) add(index uint64, size int, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := int64(size + entryOverhead)
	h.bytes += n
	if k := len(h.marks); k > 0 && h.marks[k-1].count < markEach {
		m := &h.marks[k-1]
		m.last, m.at = index, at
		m.bytes += n
		m.count++
		return
	}
	h.marks = append(h.marks, mark{last: index, bytes: n, count: 1, at: at})
}

// span notes entries that were there before, all at once.
func (h *history) span(last uint64, count int, bytes int64, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += bytes
	h.marks = append(h.marks, mark{last: last, bytes: bytes, count: max(count, markEach), at: at})
}

// cut forgets entries up to index.
func (h *history) cut(index uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.marks) > 0 && h.marks[0].last <= index {
		h.bytes -= h.marks[0].bytes
		h.marks = h.marks[1:]
	}
}

// keepFrom returns the first index that has to stay in a log that ends at last.
func (h *history) keepFrom(last uint64) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	from, bytes := uint64(1), h.bytes
	for i := range h.marks {
		m := &h.marks[i]
		if bytes <= h.limit.MaxBytes && time.Since(m.at) <= h.limit.MaxAge {
			break
		}
		from, bytes = m.last+1, bytes-m.bytes
	}
	if last < h.least {
		return 1
	}
	return min(from, last-h.least+1)
}

// load estimates what a log holds that was written before this process: a few entries are looked at and stand for
// those around them.
func (h *history) load(log raft.LogStore, first, last uint64) error {
	if first == 0 {
		return nil
	}
	step := max((last-first+1)/historySamples, 1)
	for i := first; i <= last; i += step {
		var l raft.Log
		if err := log.GetLog(i, &l); err != nil {
			return fmt.Errorf("read log entry %d: %w", i, err)
		}
		to := min(i+step-1, last)
		n := to - i + 1
		h.span(to, int(n), int64(n)*int64(len(l.Data)+entryOverhead), l.AppendedAt)
	}
	h.date()
	return nil
}

// date gives marks without a time that of the next one: raft writes the first entry of a cluster, which names its
// members, without one, and it is not ancient because of that.
func (h *history) date() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.marks) - 2; i >= 0; i-- {
		if h.marks[i].at.IsZero() {
			h.marks[i].at = h.marks[i+1].at
		}
	}
}

// historySamples is how many entries load looks at.
const historySamples = 256
