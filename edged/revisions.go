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
	"iop/storage"
)

// How much an edge tells of the configurations that the log still has.
const (
	revisionsMax      = 100
	revisionBytesMax  = 16 << 20 // of their documents together; the newest stays whatever its size
	revisionPathsMax  = 200      // paths that are told of one revision
	revisionValuesMax = 1 << 10  // bytes of one value that is told
)

// revisions are those that the log tells of (bygone.go), the newest last. Nothing is read before somebody asks, and then
// what has come since somebody asked before.
type revisions struct {
	store *storage.Store
	turn  chan struct{} // held by the one who reads and compares

	// What belongs to the turn.
	search *search  // that has not come to its end yet
	known  *settled // up to where all was read

	mu     sync.Mutex // guards the rest
	seen   []revision
	bytes  int // of documents
	notice notice
}

// notice is when and where this edge saw a revision come into effect, or at its start, in effect.
type notice struct {
	revision fsm.Revision
	index    uint64
	at       time.Time
}

// revision is one of them.
type revision struct {
	adminapi.ConfigRevision
	document []byte // nil = no longer kept
	compared bool
}

// noticed notes what the machine has now.
func (r *revisions) noticed(m *fsm.Machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notice = notice{revision: m.Revision(), index: m.Index(), at: time.Unix(0, m.Wall()).UTC()}
}

// since tells when the configuration in effect came, or if nobody has asked the log, when this edge saw it first.
func (r *revisions) since() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.seen); n > 0 && r.seen[n-1].Revision == uint64(r.notice.revision) {
		return r.seen[n-1].Time
	}
	return r.notice.at
}

// add takes a revision; the oldest go for it.
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

// list gives them, the newest first, with what each has changed. whole: the log was read as far as it is told of; else
// older ones come when somebody asks again.
func (r *revisions) list(ctx context.Context) (list []adminapi.ConfigRevision, whole bool, err error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer func() { <-r.turn }()
	if whole, err = r.read(ctx); err != nil {
		return nil, false, err
	}
	return r.show(), whole, nil
}

// show gives what is known of them. The caller has the turn.
func (r *revisions) show() (list []adminapi.ConfigRevision) {
	for i := range r.seen {
		r.compare(i)
	}
	for i := len(r.seen) - 1; i >= 0; i-- {
		list = append(list, r.seen[i].ConfigRevision)
	}
	return list
}

// compare finds out what a revision has changed, once.
func (r *revisions) compare(i int) {
	x := &r.seen[i]
	if x.compared {
		return
	}
	var before []byte
	if i > 0 && r.seen[i-1].Revision+1 == x.Revision {
		before = r.seen[i-1].document
	}
	x.Changes, x.ChangesLeft = compareDocuments(before, x.document)
	x.compared = true
}

// document gives that of a revision, false if it is not kept.
func (r *revisions) document(ctx context.Context, n fsm.Revision) (json.RawMessage, bool) {
	if _, _, err := r.list(ctx); err != nil {
		return nil, false
	}
	return r.find(n)
}

func (r *revisions) find(n fsm.Revision) (json.RawMessage, bool) {
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
