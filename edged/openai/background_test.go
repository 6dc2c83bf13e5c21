package openai_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/edged/openai"
	"iop/edged/openai/respond"
	"iop/fsm"
)

const (
	later       = `{"model":"ornith:35b","input":"hi","background":true}`
	laterStream = `{"model":"ornith:35b","input":"hi","background":true,"stream":true}`
)

// finalState waits until a response has ended.
func (e *edge) finalState(id string, header ...string) object {
	e.t.Helper()
	for range 2000 {
		o := asObject(e.t, e.do("GET", "/v1/responses/"+id, "", header...))
		if respond.Status(o.Status).Final() {
			return o
		}
		time.Sleep(5 * time.Millisecond)
	}
	e.t.Fatal("it never ends")
	return object{}
}

// quiet gives no signs of life.
func quiet(o *openai.Options, _ *openai.View) { o.QueueKeepalive = 0 }

func newBackground(t *testing.T, change ...func(*openai.Options, *openai.View)) *edge {
	t.Helper()
	e := newEdge(t, change...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		e.srv.Stop(ctx)
	})
	return e
}

func TestBackground(t *testing.T) {
	e := newBackground(t, quiet)
	run := make(chan struct{})
	e.run = func(ctx context.Context, q openai.Request, c openai.Caller) error {
		if q.Tick != 0 {
			t.Error("nobody needs signs of life")
		}
		<-run
		e.dispatch(ctx, q, c)
		return nil
	}
	e.backend = chatter
	o := asObject(t, e.respond(later))
	if o.Status != "queued" || !o.Background {
		t.Error(o)
	}
	if got := asObject(t, e.do("GET", "/v1/responses/"+o.ID, "")); got.Status != "queued" {
		t.Error(got)
	}
	close(run)
	if got := e.finalState(o.ID); got.Status != "completed" || got.Output[0].Content[0].Text != "Hello" || got.Usage.Input != 3 || got.ID != o.ID {
		t.Error(got)
	}
	list := events(t, e.do("GET", "/v1/responses/"+o.ID+"?stream=true", "").body)
	const rest = "output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done completed"
	if types(list) != "created queued in_progress "+rest || list[0].Number != 0 {
		t.Error(types(list))
	}
	if list = events(t, e.do("GET", "/v1/responses/"+o.ID+"?stream=true&starting_after=2", "").body); types(list) != rest || list[0].Number != 3 {
		t.Error(types(list))
	}
	// One SDK puts what it wants into the body of the GET.
	if list = events(t, e.do("GET", "/v1/responses/"+o.ID+"?starting_after=3", `{"stream":true}`).body); len(list) == 0 || list[0].Number != 4 {
		t.Error(types(list))
	}
	if list = events(t, e.do("GET", "/v1/responses/"+o.ID+"?stream=true&starting_after=99", "").body); len(list) != 0 {
		t.Error(types(list))
	}
	wantCode(t, e.do("GET", "/v1/responses/"+o.ID+"?stream=true&starting_after=x", ""), 400, "invalid_request")
	if got := asObject(t, e.do("POST", "/v1/responses/"+o.ID+"/cancel", "")); got.Status != "completed" {
		t.Error("what has ended was cancelled:", got.Status)
	}
	fg := asObject(t, e.respond(asked))
	wantCode(t, e.do("GET", "/v1/responses/"+fg.ID+"?stream=true", ""), 400, "invalid_request")
}

// The run outlives the client that started it; another one goes on with its events.
func TestBackgroundOutlivesItsClient(t *testing.T) {
	e := newBackground(t)
	more := make(chan struct{})
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		_ = a.Data([]byte(spoken))
		<-more
		_ = a.Data([]byte(spoken + stopped + over))
		return openai.End{Dispatched: openai.DispatchedYes, Complete: true}
	}
	c, in := e.dial(fmt.Sprintf("POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(laterStream), laterStream))
	first := readEvents(t, in, "response.created")
	delta := readEvents(t, in, "response.output_text.delta")
	_ = c.Close()
	if got := asObject(t, e.do("GET", "/v1/responses/"+first.Response.ID, "")); got.Status != "in_progress" {
		t.Error(got.Status)
	}
	q, _ := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("http://%s/v1/responses/%s?stream=true&starting_after=%d", e.addr, first.Response.ID, delta.Number), nil)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	close(more)
	again := bufio.NewReader(res.Body)
	if next := readEvents(t, again, "response.output_text.delta"); next.Number != delta.Number+1 || next.Delta != "Hello" {
		t.Errorf("%+v after %d", next, delta.Number)
	}
	if end := readEvents(t, again, "response.completed"); end.Response.Output[0].Content[0].Text != "HelloHello" {
		t.Errorf("%+v", end)
	}
}

func TestBackgroundIsCancelled(t *testing.T) {
	e := newBackground(t)
	began := make(chan struct{}, 1)
	e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		_ = a.Data([]byte(spoken))
		began <- struct{}{}
		<-ctx.Done()
		return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
	}
	o := asObject(t, e.respond(later))
	<-began
	for range 2 {
		if got := asObject(t, e.do("POST", "/v1/responses/"+o.ID+"/cancel", "")); got.Status != "cancelled" {
			t.Error(got.Status)
		}
	}
	if why := e.free(); why != fsm.ReasonCanceled {
		t.Error(why)
	}
	list := events(t, e.do("GET", "/v1/responses/"+o.ID+"?stream=true", "").body)
	if last := list[len(list)-1]; last.Type != "response.cancelled" || last.Response.Status != "cancelled" {
		t.Errorf("%+v", last)
	}
	// One that is deleted ends as well, and who follows it sees the stream break off.
	o = asObject(t, e.respond(later))
	<-began
	q, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+e.addr+"/v1/responses/"+o.ID+"?stream=true", nil)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if r := e.do("DELETE", "/v1/responses/"+o.ID, ""); r.StatusCode != 200 {
		t.Error(r.body)
	}
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("ended cleanly: %q", b)
	}
	wantCode(t, e.do("GET", "/v1/responses/"+o.ID, ""), 404, "response_not_found")
}

// Whatever goes wrong, in the queue or at the backend, the response says so.
func TestBackgroundFails(t *testing.T) {
	e := newBackground(t)
	e.run = func(context.Context, openai.Request, openai.Caller) error { return coded("queue_timeout") }
	if got := e.finalState(asObject(t, e.respond(later)).ID); got.Status != "failed" || got.Error.Code != "queue_timeout" {
		t.Error(got)
	}
	e.run = nil
	e.backend = answerJSON(400, `{"error":{"message":"too hot","code":"hot"}}`)
	if got := e.finalState(asObject(t, e.respond(later)).ID); got.Status != "failed" || got.Error.Code != "hot" || got.Error.Message != "too hot" {
		t.Error(got)
	}
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		_ = a.Data([]byte(spoken))
		return openai.End{Dispatched: openai.DispatchedYes, Code: "link_lost"}
	}
	if got := e.finalState(asObject(t, e.respond(later)).ID); got.Status != "failed" || got.Error.Code != "provider_error" {
		t.Error(got)
	}
	// What is wrong at once is told at once.
	wantCode(t, e.respond(`{"model":"no","input":"x","background":true}`), 404, "model_not_found")
	wantCode(t, e.respond(`{"model":"same","input":7,"background":true}`), 400, "invalid_type")
}

func TestIdempotentBackground(t *testing.T) {
	e := newBackground(t, twoPrincipals)
	e.backend = chatter
	key := []string{"Idempotency-Key", "k", "Authorization", "Bearer a"}
	a, b := asObject(t, e.respond(later, key...)), asObject(t, e.respond(later, key...))
	if a.ID != b.ID {
		t.Error(a.ID, b.ID)
	}
	e.finalState(a.ID, key[2:]...)
	if c := asObject(t, e.respond(later, key...)); c.ID != a.ID {
		t.Error(a.ID, c.ID)
	}
	wantCode(t, e.respond(strings.Replace(later, `"hi"`, `"ho"`, 1), key...), 409, "in_progress_elsewhere")
	if c := asObject(t, e.respond(later, "Idempotency-Key", "k", "Authorization", "Bearer b")); c.ID == a.ID {
		t.Error("another principal got", c.ID)
	}
}

// An edge that stops leaves what runs to the store: nothing is recorded as failed.
func TestStopLeavesBackgroundToTheStore(t *testing.T) {
	store := openai.NewMemoryStore(0, 0)
	e := newBackground(t, func(o *openai.Options, _ *openai.View) { o.Store = store })
	began := make(chan struct{})
	e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		_ = a.Data([]byte(spoken))
		close(began)
		<-ctx.Done()
		return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
	}
	o := asObject(t, e.respond(later))
	<-began
	e.srv.Stop(t.Context())
	if got, err := store.Get(t.Context(), "", o.ID); err != nil || got.Status != respond.InProgress {
		t.Error(got.Status, err)
	}
	wantCode(t, e.respond(later), 503, "stopping")
}

func TestMemoryStoreIsBounded(t *testing.T) {
	ctx := t.Context()
	s := openai.NewMemoryStore(10_000, time.Hour)
	big := []byte(`"` + strings.Repeat("x", 3000) + `"`)
	put := func(id string, status respond.Status) error {
		return s.Keep(ctx, &openai.Stored{ID: id, Status: status, Object: big})
	}
	has := func(id string) bool { _, err := s.Get(ctx, "", id); return err == nil }
	if _, err := s.Submit(ctx, &openai.Stored{ID: "running", Status: respond.Queued, Object: big, Background: true}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if err := put(id, respond.Completed); err != nil {
			t.Fatal(err)
		}
	}
	if has("a") || !has("b") || !has("running") {
		t.Error(has("a"), has("b"), has("running"))
	}
	if err := put("huge", respond.Completed); err != nil || has("b") {
		t.Error(err, has("b"))
	}
	if err := s.Keep(ctx, &openai.Stored{ID: "too much", Status: respond.Completed, Object: make([]byte, 20_000)}); err == nil {
		t.Error("kept beyond its bound")
	}
	// A run fills it up: it can only end now, and then the rest makes room.
	events := []respond.Event{{Type: "x", Body: big}}
	var err error
	for range 5 {
		if err = s.Progress(ctx, "", "running", openai.Progress{Status: respond.InProgress, Events: events}); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("events are not counted")
	}
	if err := s.Progress(ctx, "", "running", openai.Progress{Status: respond.Failed, Events: events}); err != nil {
		t.Error(err)
	}
	if err := s.Progress(ctx, "", "running", openai.Progress{Status: respond.Completed}); !errors.Is(err, openai.ErrEnded) {
		t.Error(err)
	}
	if old := openai.NewMemoryStore(0, time.Nanosecond); old.Keep(ctx, &openai.Stored{ID: "a", Status: respond.Completed}) != nil {
		t.Error("not kept")
	} else if _, err := old.Get(ctx, "", "a"); !errors.Is(err, openai.ErrNoResponse) {
		t.Error("kept beyond its age")
	}
}

// owning is a store that has its responses run itself.
type owning struct{ *openai.MemoryStore }

func (owning) Owns() bool { return true }

// A store that owns what it has taken says when it runs; a run that was lost runs again, and the numbers go on.
func TestOwnedBackgroundRunsWhenItsStoreSaysSo(t *testing.T) {
	store := owning{openai.NewMemoryStore(0, 0)}
	e := newBackground(t, func(o *openai.Options, _ *openai.View) { o.Store = store })
	lost, cancel := context.WithCancel(t.Context())
	e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		_ = a.Data([]byte(spoken))
		cancel()
		<-ctx.Done()
		return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
	}
	o := asObject(t, e.respond(later))
	r, err := store.Get(t.Context(), "", o.ID)
	if err != nil || r.Status != respond.Queued {
		t.Fatal(r.Status, err)
	}
	if err := e.srv.Perform(lost, r, e); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r, err = store.Get(t.Context(), "", o.ID); err != nil || r.Status != respond.InProgress {
		t.Fatal(r.Status, err)
	}
	e.backend = chatter
	if err := e.srv.Perform(t.Context(), r, e); err != nil {
		t.Error(err)
	}
	if got := e.finalState(o.ID); got.Status != "completed" || got.ID != o.ID {
		t.Error(got)
	}
	list := events(t, e.do("GET", "/v1/responses/"+o.ID+"?stream=true", "").body)
	if got := types(list); !strings.HasPrefix(got, "created queued in_progress ") || !strings.HasSuffix(got, " completed") || strings.Count(got, "in_progress") != 2 {
		t.Error(got)
	}
}

// A stored response that can't be run any more says so: its model, or the response before it, is gone.
func TestOwnedBackgroundThatCanNotRun(t *testing.T) {
	store := owning{openai.NewMemoryStore(0, 0)}
	e := newBackground(t, func(o *openai.Options, _ *openai.View) { o.Store = store })
	for code, body := range map[string]string{
		"model_not_found":             `{"model":"gone","input":"x","background":true}`,
		"previous_response_not_found": `{"model":"same","input":"x","background":true,"previous_response_id":"resp_gone"}`,
		"invalid_type":                `{"model":"same","input":7,"background":true}`,
	} {
		r := &openai.Stored{ID: "resp_" + code, Model: "m", Status: respond.Queued, Background: true, Request: []byte(body), Header: http.Header{}}
		if _, err := store.Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := e.srv.Perform(t.Context(), r, e); err != nil {
			t.Error(err)
		}
		if got := e.finalState(r.ID); got.Status != "failed" || got.Error.Code != code || got.ID != r.ID {
			t.Errorf("%+v, want %s", got, code)
		}
	}
}
