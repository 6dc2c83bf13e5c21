package edgelink

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"iop/proto/nodepb"
)

const (
	// readBuffer of a data connection, in bytes. A body that is larger is read past it.
	readBuffer = 4 << 10
	// dialsMax is how many data connections are dialled at the same time: an edge turns away those beyond what it can
	// have unproved (256, of all nodes together), and a burst of grants asks for hundreds at once.
	dialsMax = 32
	// dialTries is how often one is tried, dialPause the wait between.
	dialTries = 3
	dialPause = 50 * time.Millisecond
	// bodyKeep is the largest body buffer that a connection keeps for its next run.
	bodyKeep = 64 << 10
)

// need opens count further data connections, each served by one goroutine, within MaxConnections.
func (s *life) need(ctx context.Context, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.dead:
		return
	default:
	}
	for range min(count, s.l.o.MaxConnections-s.open) {
		s.open++
		s.l.serving.Go(func() {
			defer s.closed()
			s.serve(ctx)
		})
	}
}

func (s *life) closed() {
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
}

// enter keeps a connection for shutData; false: the life is over.
func (s *life) enter(raw net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.dead:
		return false
	default:
		s.conns[raw] = struct{}{}
		return true
	}
}

func (s *life) leaveConn(raw net.Conn) {
	_ = raw.Close()
	s.mu.Lock()
	delete(s.conns, raw)
	s.mu.Unlock()
}

// shutData closes all data connections.
func (s *life) shutData() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for raw := range s.conns {
		_ = raw.Close()
	}
}

// dialInTurn dials a data connection, not with too many others at the same time, and again if it fails.
func (s *life) dialInTurn(ctx context.Context) (conn, raw net.Conn, err error) {
	select {
	case s.dials <- struct{}{}:
		defer func() { <-s.dials }()
	case <-s.dead:
		return nil, nil, net.ErrClosed
	}
	for try := 1; ; try++ {
		conn, raw, err = s.dialData(ctx)
		if err == nil || try == dialTries || errors.Is(err, errHandshake) || ctx.Err() != nil {
			return conn, raw, err
		}
		sleep(ctx, dialPause)
	}
}

// serve dials one data connection and serves runs on it, one after another, until it or the life ends.
func (s *life) serve(ctx context.Context) {
	conn, raw, err := s.dialInTurn(ctx)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
			s.l.o.Logger.Warn("no data connection", "edge", s.l.o.Address, "error", err)
		}
		return
	}
	if !s.enter(raw) {
		_ = raw.Close()
		return
	}
	defer s.leaveConn(raw)
	d := &dataConn{s: s, conn: conn, raw: raw, br: bufio.NewReaderSize(conn, readBuffer)}
	d.answer.init(conn)
	defer d.answer.stop()
	runs := context.WithoutCancel(ctx) // a run is ended by its own stop, which the loss of the link calls
	for {
		if err := d.next(runs); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, errOver) {
				log := s.l.o.Logger
				if d.req.ID != "" { // else it was idle
					log = log.With("request", d.req.ID)
				}
				log.Debug("data connection ended", "generation", s.generation, "error", err)
			}
			return
		}
	}
}

// dataConn is one data connection being served.
type dataConn struct {
	s      *life
	conn   net.Conn
	raw    net.Conn
	br     *bufio.Reader
	body   []byte
	req    nodepb.Request
	answer answer
}

var errOver = errors.New("the run's connection is used up")

// next serves one run. An error ends the connection.
func (d *dataConn) next(ctx context.Context) error {
	d.req = nodepb.Request{}
	if err := nodepb.ReadRequest(d.br, &d.req); err != nil {
		return err
	}
	r := &d.req
	if r.Generation != d.s.generation || r.ContentLength > d.s.bodyMax {
		return nodepb.ErrMalformed
	}
	body, err := d.readBody(int(r.ContentLength))
	if err != nil {
		return err
	}
	d.answer.reset()
	if d.s.stopping.Load() {
		return d.answer.over(nodepb.Outcome{Dispatched: "no", Code: "link_lost", Message: "the node stops"})
	}
	var deadline time.Time
	var cancel context.CancelFunc
	if r.TimeoutMS > 0 {
		deadline = time.Now().Add(time.Duration(r.TimeoutMS) * time.Millisecond)
		ctx, cancel = context.WithDeadline(ctx, deadline)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	defer d.s.begin()()
	runs := d.s.l.o.Runs
	if !runs.start(r.Generation, r.Run, r.Lease, func() { cancel(); _ = d.raw.Close() }) {
		return d.answer.over(nodepb.Outcome{Dispatched: "no", Code: CodeCanceled})
	}
	d.s.await(ctx, r)
	end := d.s.l.o.Hands.Run(ctx, &Run{
		Run: r.Run, Lease: r.Lease, Generation: r.Generation,
		Provider: r.Provider, Adapter: r.Adapter, Served: r.Served, Kind: r.Kind,
		Method: r.Method, Path: r.Path, Header: r.Header, Body: body, Deadline: deadline, Trace: r.Trace, Request: r.ID,
	}, &d.answer)
	return d.ended(r, end)
}

// ended tells the edge how the run ended: by trailers, or where they can't by RunEnded.
func (d *dataConn) ended(r *nodepb.Request, end End) error {
	o := nodepb.Outcome{Dispatched: end.Dispatched.String(), Code: end.Code, Message: end.Message}
	runs := d.s.l.o.Runs
	canceled := runs.end(r.Generation, r.Run, o)
	if !canceled {
		err := d.answer.end(o)
		if err == nil {
			return nil
		}
		if !runs.tell(r.Generation, r.Run) {
			return err
		}
	}
	d.s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RunEnded{RunEnded: runEnded(r.Run, r.Lease, o, false)}})
	return errOver
}

// readBody reads n bytes: into the connection's own buffer if they are few, else into one made to measure.
func (d *dataConn) readBody(n int) ([]byte, error) {
	if cap(d.body) < n {
		size := n
		if n <= bodyKeep {
			size = min(bodyKeep, max(4<<10, 2*n))
		}
		d.body = make([]byte, size)
	}
	body := d.body[:n]
	if n > bodyKeep {
		d.body = nil
	}
	_, err := io.ReadFull(d.br, body)
	return body, err
}
