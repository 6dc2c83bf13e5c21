package edged

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/edged/refresh"
	"iop/fsm"
)

// How much an edge remembers of the configuration, since it was started.
const (
	revisionsMax      = 100
	revisionBytesMax  = 16 << 20 // of their documents together; the newest stays whatever its size
	revisionPathsMax  = 200      // paths that are told of one revision
	revisionValuesMax = 1 << 10  // bytes of one value that is told
)

// revisions are the last ones that this edge has seen, the newest last. The zero value is empty.
type revisions struct {
	mu    sync.Mutex // guards the rest
	seen  []revision
	bytes int // of documents

	comparing sync.Mutex // one reader compares at a time; taken before mu
}

// revision is one of them.
type revision struct {
	adminapi.ConfigRevision
	before   []byte // the document that it replaced; nil = that of the one before it
	document []byte // nil = no longer kept
	compared bool
}

func (r *revisions) add(x revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == revisionsMax {
		r.bytes -= len(r.seen[0].document)
		r.seen = slices.Delete(r.seen, 0, 1)
	}
	r.seen = append(r.seen, x)
	r.bytes += len(x.document)
	for i := 0; i < len(r.seen)-1 && r.bytes > revisionBytesMax; i++ {
		r.bytes -= len(r.seen[i].document)
		r.seen[i].document = nil
	}
}

// list gives them, the newest first, with what each has changed. That is found out when somebody asks, once.
func (r *revisions) list() []adminapi.ConfigRevision {
	r.comparing.Lock()
	defer r.comparing.Unlock()
	r.mu.Lock()
	seen := slices.Clone(r.seen)
	r.mu.Unlock()
	out := make([]adminapi.ConfigRevision, 0, len(seen))
	for i := range seen {
		x := &seen[i]
		if x.compared {
			out = append(out, x.ConfigRevision)
			continue
		}
		before := x.before
		if before == nil && i > 0 && seen[i-1].Revision+1 == x.Revision {
			before = seen[i-1].document
		}
		x.Changes, x.ChangesLeft = compareDocuments(before, x.document)
		r.keep(x)
		out = append(out, x.ConfigRevision)
	}
	slices.Reverse(out)
	return out
}

// keep notes what a comparison found.
func (r *revisions) keep(x *revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.seen {
		if y := &r.seen[i]; y.Revision == x.Revision && y.Index == x.Index {
			y.Changes, y.ChangesLeft, y.compared, y.before = x.Changes, x.ChangesLeft, true, nil
		}
	}
}

// document gives that of a revision, false if it is not kept.
func (r *revisions) document(_ context.Context, n fsm.Revision) (json.RawMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.seen) - 1; i >= 0; i-- {
		if r.seen[i].Revision == uint64(n) {
			return r.seen[i].document, r.seen[i].document != nil
		}
	}
	return nil, false
}

// compareDocuments tells what differs, at most revisionPathsMax paths, and how many more there are. nil: it is not known.
func compareDocuments(before, now []byte) (changes []adminapi.ChangedPath, left int) {
	if before == nil || now == nil {
		return nil, 0
	}
	old, err := configs.ParseCluster(before)
	if err != nil {
		return nil, 0 // of another version
	}
	next, err := configs.ParseCluster(now)
	if err != nil {
		return nil, 0
	}
	all := refresh.Changed(old, next)
	left = max(0, len(all)-revisionPathsMax)
	all = all[:len(all)-left]
	for i := range all {
		all[i].Old, all[i].New = short(all[i].Old), short(all[i].New)
	}
	return all, left
}

// short stands in for a value that is too long to be told.
func short(v json.RawMessage) json.RawMessage {
	if len(v) <= revisionValuesMax {
		return v
	}
	return json.RawMessage(`"(long)"`)
}

// readRevision describes the revision that the machine has now.
func (d *Daemon) readRevision(source, edge string) revision {
	r := revision{ConfigRevision: adminapi.ConfigRevision{Source: source, Edge: edge}}
	var wall int64
	d.store.View(func(m *fsm.Machine) {
		r.Revision, r.Index, wall = uint64(m.Revision()), m.Index(), m.Wall()
		r.document = slices.Clone(m.Document())
	})
	r.Time = time.Unix(0, wall).UTC()
	return r
}
