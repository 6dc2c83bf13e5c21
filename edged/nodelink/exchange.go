package nodelink

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"iop/proto/nodepb"
)

const (
	// tries bounds how often one exchange starts anew because the node never saw it.
	tries = 3
	// readBuffer is what an exchange has of its answer in memory, in bytes: little, as most of the time most streams say
	// nothing, until more than that comes at once.
	readBuffer = 4 << 10
	// readBufferLarge is what it has from then on.
	readBufferLarge = 32 << 10
	// joinMax is up to which size a body is copied behind its head, to go out with one write.
	joinMax = 8 << 10
	// keepMax is the largest head buffer that is kept for the next exchange.
	keepMax = 64 << 10
)

// buffers are what one exchange needs while it runs; they are pooled.
type buffers struct {
	from  source
	br    *bufio.Reader // one of the two
	small *bufio.Reader
	large *bufio.Reader // nil while it was not needed
	pool  *bufferPool
	head  []byte
}

// source is what the read buffer is filled from. Before it may have to wait it has the answer flushed.
type source struct {
	conn   net.Conn
	answer Answer
	owed   bool // something was handed on since the last flush
	full   bool // the last read took all that there was room for
}

func (s *source) Read(p []byte) (int, error) {
	if s.owed {
		s.owed = false
		if err := s.answer.Flush(); err != nil {
			return 0, &answerError{err}
		}
	}
	n, err := s.conn.Read(p)
	s.full = n == len(p)
	return n, err
}

func (s *source) head(h *nodepb.AnswerHead) error {
	s.owed = true
	if err := s.answer.Head(h.Status, h.Header); err != nil {
		return &answerError{err}
	}
	return nil
}

func (s *source) data(p []byte) error {
	s.owed = true
	if err := s.answer.Data(p); err != nil {
		return &answerError{err}
	}
	return nil
}

// bufferPool is shared by all links of a process.
type bufferPool struct {
	p     sync.Pool // of *buffers
	large sync.Pool // of *bufio.Reader
}

func (b *bufferPool) get(c net.Conn, a Answer) *buffers {
	u, ok := b.p.Get().(*buffers)
	if !ok {
		u = &buffers{small: bufio.NewReaderSize(nil, readBuffer), pool: b}
	}
	u.from = source{conn: c, answer: a}
	u.br = u.small
	u.br.Reset(&u.from)
	return u
}

// grow gives an answer that comes faster than it is read more room. The buffer must be empty.
func (u *buffers) grow() {
	r, ok := u.pool.large.Get().(*bufio.Reader)
	if !ok {
		r = bufio.NewReaderSize(nil, readBufferLarge)
	}
	r.Reset(&u.from)
	u.br, u.large = r, r
}

func (b *bufferPool) put(u *buffers) {
	u.from = source{}
	if u.large != nil {
		u.large.Reset(nil)
		b.large.Put(u.large)
		u.br, u.large = u.small, nil
	}
	if cap(u.head) > keepMax {
		u.head = nil
	}
	b.p.Put(u)
}

// Exchange carries one run over the link that x.Grant names. It returns when the run is really over: by its trailers,
// by the node's word, because the link is lost, or because the node said nothing for FenceTimeout after a cancel. The
// end of ctx cancels the run.
func (l *Links) Exchange(ctx context.Context, x *Exchange, a Answer) End {
	k := l.find(x.Grant.Node, x.Grant.Generation)
	if k == nil {
		return End{Dispatched: DispatchedNo, Code: CodeLinkLost, Message: "the node's link is gone"}
	}
	if int64(len(x.Body)) > l.o.MaxBodyBytes {
		return End{Dispatched: DispatchedNo, Code: CodeMalformed, Message: "the body is larger than MaxBodyBytes"}
	}
	for try := 1; ; try++ {
		end, unseen := k.exchange(ctx, x, a)
		if !unseen || try == tries || ctx.Err() != nil {
			return end
		}
		k.distrust()
	}
}

// exchange is one try. unseen: the node never saw the run, and Answer nothing of it.
func (k *link) exchange(ctx context.Context, x *Exchange, a Answer) (end End, unseen bool) {
	c, refused := k.take(ctx)
	if refused != nil {
		return *refused, false
	}
	r := k.begin(x, c)
	if r == nil {
		return End{Dispatched: DispatchedNo, Code: CodeLinkLost, Message: "the node's link was lost"}, false
	}
	stop := context.AfterFunc(ctx, func() { k.breakOff(r, "the client left") })
	u := k.links.buffers.get(c, a)
	err := k.write(r, x, u)
	if err == nil {
		end, err = u.read()
	}
	clean := u.br.Buffered() == 0
	k.links.buffers.put(u)
	calm := stop()
	if err == nil {
		k.finish(r, calm && clean)
		return end, false
	}
	if !r.sent {
		k.finish(r, calm)
		return End{Dispatched: DispatchedNo, Code: CodeMalformed, Message: err.Error()}, false
	}
	return k.settle(ctx, r, err)
}

// write sends head and body. The body is not copied, unless it is so small that one write is cheaper.
func (k *link) write(r *run, x *Exchange, u *buffers) error {
	head, err := nodepb.AppendRequest(u.head[:0], r.head(k, x))
	u.head = head
	if err != nil {
		return err
	}
	r.sent = true
	if len(x.Body) <= joinMax {
		u.head = append(head, x.Body...)
		_, err = r.conn.Write(u.head)
		return err
	}
	parts := net.Buffers{head, x.Body}
	_, err = parts.WriteTo(r.conn.Conn)
	return err
}

// head is x as it travels.
func (r *run) head(k *link, x *Exchange) *nodepb.Request {
	kind := x.Kind
	if kind == "" {
		kind = nodepb.KindTunnel
	}
	h := &nodepb.Request{
		Method: x.Method, Path: x.Path,
		Run: r.number, Lease: r.lease, Generation: uint64(k.generation), Revision: r.needs,
		Kind: kind, Provider: string(x.Grant.Provider), Adapter: x.Adapter, Served: x.Grant.Served,
		Trace: x.Trace, ID: x.Request, Header: x.Header, ContentLength: int64(len(x.Body)),
	}
	if !x.Deadline.IsZero() {
		h.TimeoutMS = uint64(max(1, time.Until(x.Deadline)/time.Millisecond))
	}
	return h
}

// answerError is an error of Answer, to tell it from one of the connection.
type answerError struct{ err error }

func (e *answerError) Error() string { return "answer: " + e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

// read hands the answer on as it arrives: each piece is what there was to read. Chunks are joined only if they arrived
// together, and never waited for.
func (u *buffers) read() (End, error) {
	var head nodepb.AnswerHead
	if err := nodepb.ReadAnswer(u.br, &head); err != nil {
		return End{}, err
	}
	if head.Over {
		return ended(head.Outcome, false), nil
	}
	if err := u.from.head(&head); err != nil {
		return End{}, err
	}
	for {
		n, err := nodepb.ReadChunkStart(u.br)
		if err != nil {
			return End{}, err
		}
		if n == 0 {
			break
		}
		if err := u.pass(n); err != nil {
			return End{}, err
		}
	}
	var o nodepb.Outcome
	if err := nodepb.ReadEnd(u.br, &o); err != nil {
		return End{}, err
	}
	return ended(o, o.Code == ""), nil
}

// pass hands on a chunk of n bytes straight out of the read buffer, and with its end the chunks behind it that are
// there already.
func (u *buffers) pass(n int) error {
	for n > 0 {
		if u.large == nil && u.from.full && u.br.Buffered() == 0 {
			u.grow()
		}
		br := u.br
		if _, err := br.Peek(1); err != nil {
			return err
		}
		p, err := br.Peek(br.Buffered())
		if err != nil {
			return err
		}
		used := min(n, len(p))
		n -= used
		if n == 0 {
			p, used = join(p, used)
		}
		if err := u.from.data(p[:min(len(p), used)]); err != nil {
			return err
		}
		if _, err := br.Discard(used); err != nil {
			return err
		}
	}
	return nodepb.ReadChunkEnd(u.br)
}

// join moves the bytes of whole chunks that follow the first n bytes of b up to these. It overwrites only what was used.
func join(b []byte, n int) (joined []byte, used int) {
	end := n
	used = n
	for {
		start, more := nodepb.NextChunk(b[used:])
		if more == 0 {
			return b[:end], used
		}
		copy(b[end:], b[used+start:used+start+more])
		end += more
		used += start + more
	}
}

func ended(o nodepb.Outcome, complete bool) End {
	return End{Dispatched: dispatched(o.Dispatched), Code: o.Code, Message: o.Message, Complete: complete}
}

func dispatched(s string) Dispatched {
	switch s {
	case "no":
		return DispatchedNo
	case "yes":
		return DispatchedYes
	}
	return DispatchedUnknown
}
