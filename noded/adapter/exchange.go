package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// lastWordsWait is how long a backend that took no more of a request has for an answer that explains it.
const lastWordsWait = time.Second

// exchange is one request and its answer on one connection.
type exchange struct {
	o    *OpenAI
	c    *conn
	call *Call
	a    Answer
	sent sending
}

// exchange runs the call on c and then either keeps c or closes it. written is false only if provably no byte of the
// request left.
func (o *OpenAI) exchange(ctx context.Context, c *conn, call *Call, a Answer) (end End, written bool) {
	head, err := appendHead(c.head[:0], o.endpoint, call, o.key)
	c.head = head
	if err != nil {
		c.abort()
		return End{Dispatched: DispatchedNo, Code: CodeBadCall, Message: err.Error()}, false
	}
	x := exchange{o: o, c: c, call: call, a: a}
	c.answered = false
	detach := context.AfterFunc(ctx, c.abort)
	end, keep := x.run(ctx, head)
	if !detach() || !keep {
		c.abort()
		x.sent.wait()
	} else {
		o.pool.put(c)
	}
	if x.sent.n == 0 && end.Dispatched == DispatchedUnknown {
		end.Dispatched = DispatchedNo
	}
	return end, x.sent.n > 0
}

// run sends the request and passes the answer on. keep: all ended in order and the connection is good for another.
func (x *exchange) run(ctx context.Context, head []byte) (end End, keep bool) {
	if err := x.c.setDeadline(x.call.Deadline); err != nil {
		return x.failed(ctx, "set a deadline", err), false
	}
	x.sent.start(x.c, head, x.call.Body)
	if x.sent.failedAtOnce() && x.sent.n == 0 {
		return x.failed(ctx, "send the request", x.sent.err), false
	}
	resp, err := x.readHead()
	if err != nil {
		return x.failed(ctx, "read the answer", err), false
	}
	stripPerHop(resp.Header)
	if len(resp.TransferEncoding) > 0 {
		resp.Body = io.NopCloser(&chunks{br: x.c.br})
	} else if isUnframed(resp) {
		resp.Body = watchEnd(resp)
	}
	if declaresNotRun(x.call.Type, resp.StatusCode) {
		end = x.holdOrPass(ctx, resp)
	} else {
		end = x.pass(ctx, resp, nil)
	}
	complete := end.Code == CodeOK || end.Code == CodeBusy
	return end, complete && !resp.Close && x.c.br.Buffered() == 0 && x.sent.complete()
}

// readHead reads status and headers within their bound of time, and leaves the call's own deadline set.
func (x *exchange) readHead() (*http.Response, error) {
	wait := x.o.headerFor
	if x.sent.failedAtOnce() {
		wait = lastWordsWait
	}
	if wait > 0 {
		until := time.Now().Add(wait)
		if d := x.call.Deadline; !d.IsZero() && d.Before(until) {
			until = d
		}
		if err := x.c.setDeadline(until); err != nil {
			return nil, err
		}
	}
	resp, err := x.c.readHead(x.call.Method, x.o.headerMax)
	if err == nil && wait > 0 {
		err = x.c.setDeadline(x.call.Deadline)
	}
	return resp, err
}

// pass hands the answer on, each piece as it is read. begun is what has been read of the body already.
func (x *exchange) pass(ctx context.Context, resp *http.Response, begun []byte) End {
	if err := x.a.Head(resp.StatusCode, resp.Header); err != nil {
		return x.unread(ctx, err)
	}
	if len(begun) > 0 {
		if err := x.a.Data(begun); err != nil {
			return x.unread(ctx, err)
		}
	}
	data := x.a.Data
	if p, ok := x.a.(Patient); ok {
		data, x.c.idle = p.Later, p.Flush
		defer func() { x.c.idle, x.c.idleErr = nil, nil }()
	}
	pool := &x.o.small
	buf := pool.Get().(*[]byte)
	defer func() { pool.Put(buf) }()
	for {
		n, err := resp.Body.Read(*buf)
		if n > 0 {
			if err := data((*buf)[:n]); err != nil {
				return x.unread(ctx, err)
			}
		}
		if n == smallBufferBytes && pool == &x.o.small {
			pool.Put(buf)
			pool = &x.o.buffers
			buf = pool.Get().(*[]byte)
		}
		switch {
		case x.c.idleErr != nil:
			return x.unread(ctx, x.c.idleErr)
		case errors.Is(err, io.EOF):
			return End{Dispatched: DispatchedYes}
		case err != nil:
			return x.failed(ctx, "read the answer's body", err)
		}
	}
}

// holdOrPass reads an answer that may be a refusal to run, and holds it back if it is; else it is passed on.
func (x *exchange) holdOrPass(ctx context.Context, resp *http.Response) End {
	body, err := io.ReadAll(io.LimitReader(resp.Body, heldBytesMax+1))
	if err != nil {
		return x.failed(ctx, "read the answer's body", err)
	}
	if len(body) > heldBytesMax || !saysNotRun(x.call.Type, resp.StatusCode, body) {
		return x.pass(ctx, resp, body)
	}
	return End{
		Dispatched: DispatchedNo,
		Code:       CodeBusy,
		Message:    fmt.Sprintf("backend %s answers %d: it did not run the request", x.o.endpoint.address, resp.StatusCode),
		Held:       &Held{Status: resp.StatusCode, Header: resp.Header, Body: body},
	}
}

// unread ends a run whose answer nobody takes any more.
func (x *exchange) unread(ctx context.Context, err error) End {
	end := End{Dispatched: DispatchedYes, Code: CodeAnswerFailed, Message: "pass the answer on: " + err.Error()}
	if ctx.Err() != nil {
		end.Code = CodeCanceled
	}
	return end
}

// unquoted is an error's text up to where it quotes what it read: that is the backend's, which may repeat a prompt, and
// the text goes into logs.
func unquoted(err error) string {
	text, _, quotes := strings.Cut(err.Error(), `"`)
	if quotes {
		text = strings.TrimRight(text, ": ")
	}
	return text
}

// failed ends a run that broke while doing what.
func (x *exchange) failed(ctx context.Context, what string, err error) End {
	end := End{Code: CodeBackendBroke, Message: fmt.Sprintf("%s, backend %s: %s", what, x.o.endpoint.address, unquoted(err))}
	if x.c.answered {
		end.Dispatched = DispatchedYes
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		end.Code = CodeCanceled
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		end.Code = CodeBackendTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		end.Message = fmt.Sprintf("%s: backend %s closed the connection before the end", what, x.o.endpoint.address)
	}
	return end
}
