package noded

import (
	"fmt"
	"net/http"
	"time"

	"iop/noded/adapter"
	"iop/noded/edgelink"
)

// ended is how a run ended, as far as it tells of its backend.
type ended struct {
	end    adapter.End
	status int // of the answer; 0 = there was none
	took   time.Duration
}

// well: the backend has done what it was asked. What it refuses with 4xx says nothing of it, either way: that is the
// request's fault, or the key's.
func (e ended) well() bool {
	return e.end.Code == adapter.CodeOK && e.end.Dispatched == adapter.DispatchedYes && e.status < http.StatusBadRequest
}

// broken: the backend could not do it, by its own word or by the end of its connection.
func (e ended) broken() bool {
	switch e.status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return e.end.Dispatched == adapter.DispatchedYes
	}
	return e.end.Code == adapter.CodeBackendBroke
}

// String says what went wrong.
func (e ended) String() string {
	if e.end.Code != adapter.CodeOK {
		return e.end.Message
	}
	return fmt.Sprintf("status %d", e.status)
}

// noting is an Answer that remembers the status that passes.
type noting struct {
	edgelink.Answer
	status int
	timed  bool
	at     time.Time // when it came, if timed
}

// Head implements edgelink.Answer.
func (n *noting) Head(status int, h http.Header) error {
	n.status = status
	if n.timed {
		n.at = time.Now()
	}
	return n.Answer.Head(status, h)
}

// Later and Flush make it as patient as the answer that it stands before: see adapter.Patient.
func (n *noting) Later(p []byte) error {
	if a, ok := n.Answer.(adapter.Patient); ok {
		return a.Later(p)
	}
	return n.Data(p)
}

// Flush sends what Later kept.
func (n *noting) Flush() error {
	if a, ok := n.Answer.(adapter.Patient); ok {
		return a.Flush()
	}
	return nil
}
