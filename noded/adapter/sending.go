package adapter

// sideBodyBytes: a larger request body is written from beside, for a backend may answer before it has read it all,
// and would never read the rest while nobody reads its answer.
const sideBodyBytes = 32 << 10

// sending is a request on its way out. It belongs to the exchange's goroutine, but n and err, while beside is open.
type sending struct {
	beside chan struct{} // closed when the writer beside has ended; nil if the request was written in place
	n      int64         // bytes that the system took
	err    error
}

// start writes the request, from beside if it is large.
func (s *sending) start(c *conn, head, body []byte) {
	if len(body) <= sideBodyBytes {
		s.n, s.err = c.write(head, body)
		return
	}
	s.beside = make(chan struct{})
	go func() {
		defer close(s.beside)
		s.n, s.err = c.write(head, body)
	}()
}

// failedAtOnce reports whether a request that was written in place could not be.
func (s *sending) failedAtOnce() bool { return s.beside == nil && s.err != nil }

// complete reports, without waiting, whether all of the request has been written.
func (s *sending) complete() bool {
	if s.beside != nil {
		select {
		case <-s.beside:
		default:
			return false
		}
	}
	return s.err == nil
}

// wait returns when nothing is written any more; the connection has ended, or it would wait for the backend.
func (s *sending) wait() {
	if s.beside != nil {
		<-s.beside
	}
}
