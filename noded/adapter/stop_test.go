package adapter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"iop/noded/adapter"
)

// hung begins an answer with these bytes and then says nothing; gone tells when the client has closed.
func hung(t *testing.T, begin string) (b *rawBackend, got, gone chan struct{}) {
	t.Helper()
	got, gone = make(chan struct{}, 1), make(chan struct{}, 1)
	b = newRawBackend(t, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.write(begin)
		got <- struct{}{}
		c.untilGone()
		gone <- struct{}{}
	})
	return b, got, gone
}

func TestACancelLeavesTheBackendAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		begin string
		body  bool // a piece of it is passed on
	}{
		"never answers":       {"", false},
		"half headers":        {"HTTP/1.1 200 OK\r\nX: ", false},
		"in the body":         {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", true},
		"in a chunk":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npart", true},
		"in a held-back body": {"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\n{", false},
	} {
		t.Run(name, func(t *testing.T) {
			b, got, gone := hung(t, c.begin)
			ctx, cancel := context.WithCancel(t.Context())
			passed := make(chan struct{}, 1)
			r := recorder{onData: func(int) error { passed <- struct{}{}; return nil }}
			ended := make(chan adapter.End, 1)
			o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
			go func() {
				call := post("{}")
				call.Type = "llamacpp"
				ended <- o.Do(ctx, call, &r)
			}()
			<-got
			if c.body {
				<-passed
			}
			cancel()
			end := <-ended
			<-gone
			if end.Code != adapter.CodeCanceled || end.Dispatched == adapter.DispatchedNo {
				t.Fatalf("end is %+v", end)
			}
			if c.body != (r.body.String() == "part") {
				t.Fatalf("passed on %q", r.body.String())
			}
		})
	}
}

func TestACallWhoseContextHasEndedIsNotSent(t *testing.T) {
	b := newRawBackend(t, always(withLength("ok")))
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	_, end := do(t.Context(), o, post("{}")) // leaves a connection behind
	wantEnd(t, end, adapter.DispatchedYes, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fresh := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	_, end = do(ctx, fresh, post("{}"))
	wantEnd(t, end, adapter.DispatchedNo, adapter.CodeCanceled)
	if _, end = do(ctx, o, post("{}")); end.Code != adapter.CodeCanceled && end.Code != "" {
		t.Fatalf("end is %+v", end)
	}
}

func TestTheDeadlineEndsACall(t *testing.T) {
	for name, begin := range map[string]string{
		"never answers": "",
		"in the body":   "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart",
	} {
		t.Run(name, func(t *testing.T) {
			b, _, gone := hung(t, begin)
			c := post("{}")
			c.Deadline = time.Now().Add(50 * time.Millisecond)
			_, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), c)
			<-gone
			if end.Code != adapter.CodeBackendTimeout || end.Dispatched == adapter.DispatchedNo {
				t.Fatalf("end is %+v", end)
			}
		})
	}
	t.Run("before the call", func(t *testing.T) {
		b := newRawBackend(t, always(withLength("ok")))
		c := post("{}")
		c.Deadline = time.Now().Add(-time.Second)
		_, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), c)
		wantEnd(t, end, adapter.DispatchedNo, adapter.CodeBackendTimeout)
	})
}

func TestTheDeadlineOfOneCallDoesNotReachTheNext(t *testing.T) {
	deadline := time.Now().Add(300 * time.Millisecond)
	b := newRawBackend(t, func(c *rawConn) {
		c.request()
		c.write(withLength("ok"))
		c.request()
		time.Sleep(time.Until(deadline) + 10*time.Millisecond)
		c.write(withLength("ok"))
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	c := post("{}")
	c.Deadline = deadline
	_, end := do(t.Context(), o, c)
	wantEnd(t, end, adapter.DispatchedYes, "")
	_, end = do(t.Context(), o, post("{}"))
	wantEnd(t, end, adapter.DispatchedYes, "")
	if n := b.accepted.Load(); n != 1 {
		t.Errorf("%d connections, so the second call was not on the first one's", n)
	}
}

func TestSlowHeadersAreBoundedIfAsked(t *testing.T) {
	b, _, gone := hung(t, "HTTP/1.1 200 OK\r\n")
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url(), HeaderTimeout: 30 * time.Millisecond})
	_, end := do(t.Context(), o, post("{}"))
	<-gone
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendTimeout)
}

func TestTheBoundOnHeadersDoesNotBoundTheBody(t *testing.T) {
	b := newRawBackend(t, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
		for _, s := range []string{"s", "l", "o", "w"} {
			time.Sleep(30 * time.Millisecond)
			c.write(s)
		}
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url(), HeaderTimeout: 40 * time.Millisecond})
	r, end := do(t.Context(), o, post("{}"))
	wantEnd(t, end, adapter.DispatchedYes, "")
	if r.body.String() != "slow" {
		t.Errorf("got %q", r.body.String())
	}
}

func TestAnAnswerThatNobodyTakesEndsTheRun(t *testing.T) {
	b, _, gone := hung(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
	r := recorder{onData: func(int) error { return errors.New("the client has gone") }}
	end := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Do(t.Context(), post("{}"), &r)
	<-gone
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeAnswerFailed)
}

// A client that does not read holds back its own backend and nobody else: what is between them is bounded.
func TestASlowReaderHoldsBackItsBackendOnly(t *testing.T) {
	const much = 64 << 20
	written := make(chan int, 1)
	b := newRawBackend(t, func(c *rawConn) {
		r := c.request()
		for ; r != nil && r.URL.Path == "/v1/quick"; r = c.request() {
			c.write(withLength("ok"))
		}
		if r == nil {
			return
		}
		c.write("HTTP/1.1 200 OK\r\n\r\n")
		n := 0
		for block := []byte(strings.Repeat("x", 64<<10)); n < much; {
			m, err := c.Write(block)
			n += m
			if err != nil {
				break
			}
		}
		written <- n
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	stalled, release := make(chan struct{}), make(chan struct{})
	r := recorder{onData: func(total int) error {
		if total > 1<<20 {
			return errors.New("enough")
		}
		select {
		case stalled <- struct{}{}:
		default:
		}
		<-release
		return nil
	}}
	ended := make(chan adapter.End)
	go func() { ended <- o.Do(t.Context(), post("{}"), &r) }()
	<-stalled
	for range 100 {
		quick := post("{}")
		quick.Path = "/v1/quick"
		_, end := do(t.Context(), o, quick)
		wantEnd(t, end, adapter.DispatchedYes, "")
	}
	close(release)
	wantEnd(t, <-ended, adapter.DispatchedYes, adapter.CodeAnswerFailed)
	if n := <-written; n >= much {
		t.Errorf("the backend could write %d bytes that nobody read", n)
	}
}
