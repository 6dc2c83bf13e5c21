package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"iop/edged/openai/respond"
)

// Store keeps responses: those that clients asked to have stored, and all that run in the background. How long a response
// lives, and what it survives, is the store's: with the one in memory (NewMemoryStore) a response is gone when this edge
// stops, and other replicas don't know it. Every method is for one principal, who sees no response of another.
//
// A background response is submitted, gets events and states by Progress, and is final once Progress has set a final
// state; the first final state stays. An event's sequence number is its place in the list of all events, so that a run
// that begins anew, here or elsewhere, just goes on with the list.
type Store interface {
	// Keep stores a response that has ended.
	Keep(ctx context.Context, r *Stored) error
	// Submit stores a background response before it runs; it is safe, as far as the store promises it, when Submit
	// returns. If the principal has a response of this id already, nothing changes and that one is returned.
	Submit(ctx context.Context, r *Stored) (before *Stored, err error)
	// Progress adds to a background response. ErrEnded: it is final already, and nothing changed.
	Progress(ctx context.Context, principal, id string, p Progress) error
	// Get returns a response. The caller must not change it.
	Get(ctx context.Context, principal, id string) (*Stored, error)
	// Delete forgets a response.
	Delete(ctx context.Context, principal, id string) error
	// Events returns events of a background response from a sequence number on. If there is none yet it waits for one,
	// unless the response is final: over = no more can come.
	Events(ctx context.Context, principal, id string, from int64) (events []respond.Event, over bool, err error)
}

// Errors of a Store.
var (
	ErrNoResponse = errors.New("no such response")
	ErrEnded      = errors.New("the response has ended")
	ErrStoreFull  = errors.New("the store is full of responses that still run")
	// ErrTooLong says that a response does not fit into the store at all.
	ErrTooLong = errors.New("the response is too large to be stored")
	// ErrAgain is what the Runner of Perform returns if the run was lost, or did not take place, and the Store has it run
	// again: nothing is recorded then.
	ErrAgain = errors.New("the response will run again")
)

// Stored is a response in a Store.
type Stored struct {
	ID        string
	Principal string
	Token     string // of the principal, for its counters
	Model     string // as the client wrote it
	Created   int64  // Unix seconds
	Previous  string // id of the response that it goes on from
	Asked     string // id of the request as its client knows it, for logs; it is not stored

	Status respond.Status
	Input  []json.RawMessage // items, each with an id
	Object json.RawMessage   // the response as a client gets it

	// Of background responses only: what it takes to run one, on any replica.
	Background bool
	Events     []respond.Event // that it begins with; only Submit looks at them
	Admission  string          // id of its request in the queue
	Sum        [32]byte        // SHA-256 of the request, to tell a retry from another request with the same Idempotency-Key
	Request    []byte          // body, as the client sent it
	Header     http.Header     // of the request, without keys
	Ask        Request         // as admission must know it; only Submit looks at it
}

// Progress is what a run adds to a background response. A final Status ends it.
type Progress struct {
	Status respond.Status
	Object json.RawMessage // nil = as before
	Events []respond.Event
}

// size is about how much memory a response takes.
func (r *Stored) size() int64 {
	n := 1024 + len(r.Object) + len(r.Request)
	for _, it := range r.Input {
		n += len(it) + 24
	}
	return int64(n)
}
