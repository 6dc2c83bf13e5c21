package admin

import (
	"net/http"
	"slices"
	"time"
)

// paced is an answer that its caller has to take: one that takes less than a part of it (livePart) in the given time is cut
// off, so nobody makes the edge keep what he does not read.
type paced struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

func newPaced(w http.ResponseWriter, patience time.Duration) *paced {
	p := &paced{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
	p.until(time.Time{}) // that of the call before, on the same connection
	return p
}

// until sets the end of patience. A writer without deadlines is one of a test.
func (p *paced) until(t time.Time) { _ = p.control.SetWriteDeadline(t) }

// WriteHeader begins the answer.
func (p *paced) WriteHeader(status int) {
	p.until(time.Now().Add(p.patience))
	p.ResponseWriter.WriteHeader(status)
}

// Write writes part after part.
func (p *paced) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, livePart) {
		p.until(time.Now().Add(p.patience))
		m, err := p.ResponseWriter.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Unwrap is for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }
