package backend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"time"
)

// bodyMax is the largest body that the backend reads, in bytes.
const bodyMax = 64 << 20

// buffered is what the server surely keeps back until the handler returns, in bytes.
const buffered = 1024

// ServeHTTP answers one request by its plan.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		b.serveGet(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		return // the caller left in its own body
	}
	a, err := readAsked(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, "the backend could not read the body: "+err.Error())
		return
	}
	p := b.planFor(a.tag())
	if p.NotRun {
		b.mu.Lock()
		b.stats.NotRun++
		b.mu.Unlock()
		x := &running{Run: Run{Tag: a.tag()}, let: make(chan struct{})}
		if p.Hold == Nowhere || b.hold(r.Context(), x) {
			b.refuse(w, &p)
		}
		return
	}
	run := &Run{
		Tag: a.tag(), Path: r.URL.Path, Model: a.Model, Stream: a.Stream,
		Size: int64(len(body)), Sum: sha256.Sum256(body), Header: r.Header.Clone(),
	}
	if len(body) <= bodyKeptMax {
		run.Body = body
	}
	x, ok := b.beginOrWait(r.Context(), run)
	if !ok {
		writeError(w, http.StatusServiceUnavailable, "the backend's hard limit was exceeded")
		return
	}
	b.run(w, r, &p, x)
}

func (b *Backend) serveGet(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/health") {
		if b.unwell.Load() {
			writeError(w, http.StatusServiceUnavailable, "the backend is not well, as planned")
			return
		}
		_, _ = io.WriteString(w, `{"status":"ok"}`)
		return
	}
	_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
}

// run is a counted run from its begin to its end.
func (b *Backend) run(w http.ResponseWriter, r *http.Request, p *Plan, x *running) {
	end := Aborted
	if p.Deaf {
		defer func() { b.hold(context.Background(), x); b.finish(x, end) }()
	} else {
		defer func() { b.finish(x, end) }()
	}
	ctx := r.Context()
	switch {
	case p.Hold == BeforeHead && !b.hold(ctx, x):
		return
	case p.Never:
		<-ctx.Done()
		return
	case p.Drop == BeforeHead:
		end = Dropped
		reset(w)
		return
	case p.Raw != nil:
		end = Finished
		b.finish(x, end)
		sendRaw(w, p.Raw, 0)
		return
	}
	if b.failEvery > 0 && x.N%b.failEvery == 0 {
		end = Failed
		b.finish(x, end)
		writeError(w, http.StatusInternalServerError, "the backend fails every "+itoa(b.failEvery)+"th run")
		return
	}
	if p.Status != 0 {
		end = Failed
		b.finish(x, end)
		b.refuse(w, p)
		return
	}
	if x.Stream {
		end = b.stream(ctx, w, p, x)
		return
	}
	end = b.plain(ctx, w, p, x)
}

// plain answers in one piece.
func (b *Backend) plain(ctx context.Context, w http.ResponseWriter, p *Plan, x *running) End {
	if !pause(ctx, p.First) {
		return Aborted
	}
	body := p.Plain(x.Path, x.Model)
	addHeader(w, p, "application/json")
	w.Header().Set("Content-Length", itoa(len(body)))
	if p.SlowHead > 0 {
		b.finish(x, Finished)
		sendRaw(w, append(rawHead(w.Header()), body...), p.SlowHead)
		return Finished
	}
	if p.CutAt > 0 {
		return twoPieces(ctx, w, body, p.CutAt)
	}
	half := len(body) / 2
	if p.Drop != Nowhere || p.Hold == AfterHead || p.Hold == AfterTokens {
		if write(w, body[:half], p.Split) != nil || p.Hold != Nowhere && !b.hold(ctx, x) {
			return Aborted
		}
		body = body[half:]
	}
	if p.Drop != Nowhere {
		reset(w)
		return Dropped
	}
	if len(body) < buffered && p.Split == 0 {
		b.finish(x, Finished)
		_, _ = w.Write(body)
		return Finished
	}
	// The last byte goes out after the run is over, so that whoever has the answer finds it ended.
	last := len(body) - 1
	if write(w, body[:last], p.Split) != nil || ctx.Err() != nil {
		return Aborted
	}
	b.finish(x, Finished)
	_, _ = w.Write(body[last:])
	return Finished
}

// stream answers with SSE frames.
func (b *Backend) stream(ctx context.Context, w http.ResponseWriter, p *Plan, x *running) End {
	addHeader(w, p, "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if flush(w) != nil {
		return Aborted
	}
	if p.Hold == AfterHead && !b.hold(ctx, x) || !pause(ctx, p.First) {
		return Aborted
	}
	if p.Drop == AfterHead {
		reset(w)
		return Dropped
	}
	if p.CutAt > 0 {
		return twoPieces(ctx, w, bytes.Join(p.Frames(x.Path, x.Model), nil), p.CutAt)
	}
	tokens := len(p.tokens())
	for i, f := range p.Frames(x.Path, x.Model) {
		if i == p.At && p.Hold == AfterTokens && !b.hold(ctx, x) {
			return Aborted
		}
		if i == p.At && p.Drop == AfterTokens {
			reset(w)
			return Dropped
		}
		if i > 0 && !pause(ctx, p.Pace) || ctx.Err() != nil || write(w, f, p.Split) != nil {
			return Aborted
		}
		if i < tokens {
			b.sent(x)
		}
	}
	return Finished // the terminal chunk goes out after the handler, and so after this end
}

// twoPieces sends a body so that its reader most likely reads it in two pieces.
func twoPieces(ctx context.Context, w http.ResponseWriter, body []byte, at int) End {
	at = min(at, len(body))
	if write(w, body[:at], 0) != nil || !pause(ctx, 300*time.Microsecond) || write(w, body[at:], 0) != nil {
		return Aborted
	}
	return Finished
}

func (b *Backend) refuse(w http.ResponseWriter, p *Plan) {
	body := p.Body
	if body == nil {
		body = errorBody(p.Status, "the backend answers "+itoa(p.Status)+" as planned")
	}
	addHeader(w, p, "application/json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}
