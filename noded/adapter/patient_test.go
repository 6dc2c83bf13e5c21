package adapter_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/noded/adapter"
)

// patient is an Answer that keeps what comes until it is flushed.
type patient struct {
	recorder
	kept    string
	flushes int
	onFlush func(sent string) error // may be nil
}

func (p *patient) Later(b []byte) error { p.kept += string(b); return nil }

func (p *patient) Flush() error {
	if p.kept != "" {
		p.flushes++
		p.body.WriteString(p.kept)
		p.kept = ""
	}
	if p.onFlush != nil {
		return p.onFlush(p.body.String())
	}
	return nil
}

// A patient answer is flushed when the backend has no more to give, so before each wait: the backend sends the next piece
// only after the client has the last one.
func TestAPatientAnswerIsFlushedBeforeEachWait(t *testing.T) {
	const pieces = 50
	seen := make(chan string, pieces)
	b := newRawBackend(t, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i := range pieces {
			c.write("1\r\nx\r\n")
			for s := range seen {
				if len(s) == i+1 {
					break
				}
			}
		}
		c.write("1\r\ny\r\n0\r\n\r\n")
	})
	p := &patient{onFlush: func(sent string) error {
		if sent != "" {
			seen <- sent
		}
		return nil
	}}
	end := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Do(t.Context(), post("{}"), p)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if got := p.body.String() + p.kept; got != strings.Repeat("x", pieces)+"y" {
		t.Errorf("got %q", got)
	}
	if p.kept != "y" {
		t.Error("the last bytes are flushed, and do not go out with the outcome")
	}
}

// What has come already is not flushed piece by piece.
func TestWhatCameInOneGoGoesInOneGo(t *testing.T) {
	b := newRawBackend(t, always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+strings.Repeat("1\r\nx\r\n", 20000)+"0\r\n\r\n"))
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	var p patient
	wantEnd(t, o.Do(t.Context(), post("{}"), &p), adapter.DispatchedYes, "")
	if n := len(p.body.String() + p.kept); n != 20000 {
		t.Errorf("%d bytes", n)
	}
	if p.flushes > 1000 {
		t.Errorf("%d flushes", p.flushes)
	}
	next := &recorder{}
	wantEnd(t, o.Do(t.Context(), post("{}"), next), adapter.DispatchedYes, "") // the connection serves an answer that is not patient
	if next.body.Len() != 20000 {
		t.Errorf("%d bytes", next.body.Len())
	}
}

func TestAFlushThatFailsEndsTheRun(t *testing.T) {
	b, _, gone := hung(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
	p := &patient{onFlush: func(string) error { return errors.New("the client has gone") }}
	end := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Do(t.Context(), post("{}"), p)
	<-gone
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeAnswerFailed)
	if p.status != http.StatusOK {
		t.Errorf("status %d", p.status)
	}
}

// Waiting for a patient answer's backend ends as any other wait does.
func TestAPatientAnswersWaitEndsWithItsRun(t *testing.T) {
	const begin = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
	t.Run("cancel", func(t *testing.T) {
		b, _, gone := hung(t, begin)
		ctx, cancel := context.WithCancel(t.Context())
		p := &patient{onFlush: func(sent string) error {
			if sent == "part" {
				cancel()
			}
			return nil
		}}
		end := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Do(ctx, post("{}"), p)
		<-gone
		wantEnd(t, end, adapter.DispatchedYes, adapter.CodeCanceled)
	})
	t.Run("deadline", func(t *testing.T) {
		b, _, gone := hung(t, begin)
		c := post("{}")
		c.Deadline = time.Now().Add(50 * time.Millisecond)
		end := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Do(t.Context(), c, &patient{})
		<-gone
		wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendTimeout)
	})
	t.Run("broken", func(t *testing.T) {
		b := newRawBackend(t, once(begin))
		end := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Do(t.Context(), post("{}"), &patient{})
		wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendBroke)
	})
}
