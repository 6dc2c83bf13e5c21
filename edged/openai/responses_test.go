package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/edged/openai"
	"iop/fsm"
)

const (
	spoken  = "data: {\"model\":\"served/ornith:35b\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n"
	stopped = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	counted = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\n"
	over    = "data: [DONE]\n\n"
	asked   = `{"model":"ornith:35b","input":"hi"}`
	flowing = `{"model":"ornith:35b","input":"hi","stream":true}`
	plain   = `{"model":"served/ornith:35b","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`
)

// chatter answers as a chat backend does: a stream if it is asked for one.
func chatter(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End {
	if strings.Contains(string(x.Body), `"stream":true`) {
		return answerAs("text/event-stream", 200, spoken, stopped, counted, over)(ctx, x, a)
	}
	return answerJSON(200, plain)(ctx, x, a)
}

func (e *edge) respond(body string, header ...string) *reply {
	e.t.Helper()
	return e.do("POST", "/v1/responses", body, header...)
}

// event is an event of a response's stream.
type event struct {
	Type     string
	Number   int64 `json:"sequence_number"`
	Response object
	Delta    string
}

type object struct {
	ID, Status, Model string
	Background        bool
	Previous          string `json:"previous_response_id"`
	Error             struct{ Code, Message string }
	Output            []struct {
		ID      string
		Content []struct{ Text string }
	}
	Usage struct {
		Input int64 `json:"input_tokens"`
	}
}

// events reads a stream; numbers go up by one from the first.
func events(t *testing.T, body string) (list []event) {
	t.Helper()
	for _, frame := range strings.Split(body, "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(frame, "event: "), "\ndata: ")
		if !ok {
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != name {
			t.Fatalf("%v: %q", err, frame)
		}
		if n := len(list); n > 0 && e.Number != list[n-1].Number+1 {
			t.Fatalf("%d after %d", e.Number, list[n-1].Number)
		}
		list = append(list, e)
	}
	return list
}

func types(list []event) string {
	var s []string
	for _, e := range list {
		s = append(s, strings.TrimPrefix(e.Type, "response."))
	}
	return strings.Join(s, " ")
}

func asObject(t *testing.T, r *reply) (o object) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &o); err != nil || r.StatusCode != 200 {
		t.Fatalf("%d %v: %s", r.StatusCode, err, r.body)
	}
	return o
}

func TestResponse(t *testing.T) {
	e := newEdge(t)
	e.backend = chatter
	r := e.respond(asked)
	o := asObject(t, r)
	if o.Status != "completed" || o.Model != "ornith:35b" || o.Output[0].Content[0].Text != "Hello" || o.Usage.Input != 3 {
		t.Error(r.body)
	}
	if r.Header.Get("X-Iop-Provider") != "p1" || r.Header.Get("Content-Type") != "application/json" || r.ContentLength != int64(len(r.body)) {
		t.Error(r.Header)
	}
	x := e.last()
	if want := `{"model":"served/ornith:35b","messages":[{"role":"user","content":"hi"}]}`; x.Path != "/v1/chat/completions" || string(x.Body) != want {
		t.Errorf("%s %s", x.Path, x.Body)
	}
	if q := e.lastRequest(); q.Needs != fsm.NeedChat {
		t.Error(q.Needs)
	}
	if why := e.free(); why != fsm.ReasonDone {
		t.Error(why)
	}
}

func TestResponseStream(t *testing.T) {
	e := newEdge(t)
	e.backend = chatter
	r := e.respond(flowing)
	list := events(t, r.body)
	const want = "created in_progress output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done completed"
	if types(list) != want || list[0].Number != 0 || r.err != nil {
		t.Errorf("%s\n%v", types(list), r.err)
	}
	last := list[len(list)-1].Response
	if last.Usage.Input != 3 || last.Model != "ornith:35b" {
		t.Error(last)
	}
	if r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Error(r.Header)
	}
	if got := asObject(t, e.do("GET", "/v1/responses/"+last.ID, "")); got.ID != last.ID || got.Status != "completed" {
		t.Error(got)
	}
}

// Fault: a run that broke off is reported as completed. It never ends cleanly, and its last event says that it failed.
func TestBrokenResponseIsSeenAsBroken(t *testing.T) {
	e := newEdge(t)
	for _, code := range []string{"backend_broke", "link_lost"} {
		e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
			_ = a.Head(200, sse.Clone())
			_ = a.Data([]byte(spoken + "data: {\"cho"))
			return openai.End{Dispatched: openai.DispatchedYes, Code: code}
		}
		r := e.respond(flowing)
		list := events(t, r.body)
		last := list[len(list)-1]
		if r.err == nil || last.Type != "response.failed" || last.Response.Status != "failed" || last.Response.Error.Code != "provider_error" {
			t.Errorf("%v: %+v", r.err, last)
		}
		if got := asObject(t, e.do("GET", "/v1/responses/"+last.Response.ID, "")); got.Status != "failed" {
			t.Error(got.Status)
		}
	}
}

// Fault: an answer that ends well on the wire, but stops in the middle, is taken for complete.
func TestResponseOfAHalfAnswerFails(t *testing.T) {
	e := newEdge(t)
	e.backend = answerAs("text/event-stream", 200, spoken)
	list := events(t, e.respond(flowing).body)
	if last := list[len(list)-1]; last.Type != "response.failed" {
		t.Errorf("%+v", last)
	}
	e.backend = answerJSON(200, `{"choices":[{"message":{"content":"Hel`)
	wantCode(t, e.respond(asked), 502, "provider_error")
	if s := e.scraped(); !strings.Contains(s, `outcome="backend_error"`) {
		t.Error("not counted as a fault of the backend")
	}
}

func TestResponseErrors(t *testing.T) {
	e := newEdge(t)
	for _, body := range []string{asked, flowing} {
		e.backend = answerJSON(400, `{"error":{"message":"too hot","type":"invalid_request_error","param":"temperature","code":"hot"}}`)
		wantCode(t, e.respond(body), 400, "hot")
		e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
			_ = a.Head(503, http.Header{"Content-Type": {"application/json"}})
			_ = a.Data([]byte(`{"error":{"message":"full","type":"server_error","code":"busy_here"}}`))
			return openai.End{Dispatched: openai.DispatchedNo, Code: "busy"}
		}
		wantCode(t, e.respond(body), 503, "busy_here")
		e.run = func(context.Context, openai.Request, openai.Caller) error { return coded("queue_full") }
		r := e.respond(body)
		wantCode(t, r, 429, "queue_full")
		if r.Header.Get("Retry-After") == "" {
			t.Error(r.Header)
		}
		e.run = nil
	}
	wantCode(t, e.respond(`{"model":"no","input":"x"}`), 404, "model_not_found")
	wantCode(t, e.respond(`{"model":"same","input":"x","temperature":"hot"}`), 400, "invalid_type")
	wantCode(t, e.respond(`{"model":"same","input":"x","previous_response_id":"resp_no"}`), 400, "previous_response_not_found")
	wantCode(t, e.do("GET", "/v1/responses/resp_no", ""), 404, "response_not_found")
	wantCode(t, e.do("GET", "/v1/responses", ""), 405, "method_not_allowed")
	wantCode(t, e.do("POST", "/v1/responses/resp_no/nothing", "{}"), 404, "unknown_url")
	wantCode(t, e.do("PUT", "/v1/responses/resp_no", "{}"), 405, "method_not_allowed")
}

// Fault: an agent gives up a stream that waits in the queue, since it takes comments for silence.
func TestWaitingResponseShowsEvents(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.QueueKeepalive = time.Millisecond })
	e.backend = chatter
	fails := false
	e.run = func(ctx context.Context, q openai.Request, c openai.Caller) error {
		if q.Tick != time.Millisecond {
			t.Error(q.Tick)
		}
		for i := range 4 {
			c.Queued(4 - i)
		}
		if fails {
			return coded("queue_timeout")
		}
		e.dispatch(ctx, q, c)
		return nil
	}
	const waited = "created in_progress in_progress in_progress "
	r := e.respond(flowing)
	if got := types(events(t, r.body)); !strings.HasPrefix(got, waited+"output_item.added ") || !strings.HasSuffix(got, " completed") || r.err != nil {
		t.Error(got, r.err)
	}
	fails = true
	r = e.respond(flowing)
	list := events(t, r.body)
	if types(list) != waited+"failed" || list[len(list)-1].Response.Error.Code != "queue_timeout" || r.err == nil {
		t.Error(r.body, r.err)
	}
	fails = false
	e.backend = answerJSON(400, `{"error":{"message":"too hot","code":"hot"}}`)
	list = events(t, e.respond(flowing).body)
	if types(list) != waited+"failed" || list[len(list)-1].Response.Error.Code != "hot" {
		t.Error(types(list))
	}
}

func TestClientLeavesAResponse(t *testing.T) {
	e := newEdge(t)
	gone := make(chan struct{})
	e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		_ = a.Data([]byte(spoken))
		<-ctx.Done()
		close(gone)
		return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
	}
	c, in := e.dial(fmt.Sprintf("POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(flowing), flowing))
	for line := ""; !strings.Contains(line, "output_text.delta"); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	<-gone
	if why := e.free(); why != fsm.ReasonCanceled {
		t.Error(why)
	}
}

func TestConversationGoesOn(t *testing.T) {
	e := newEdge(t, twoPrincipals)
	e.backend = chatter
	mine, theirs := []string{"Authorization", "Bearer a"}, []string{"Authorization", "Bearer b"}
	first := asObject(t, e.respond(`{"model":"ornith:35b","input":"one","instructions":"Be short."}`, mine...))
	second := asObject(t, e.respond(fmt.Sprintf(`{"model":"ornith:35b","input":"two","previous_response_id":%q}`, first.ID), mine...))
	third := fmt.Sprintf(`{"model":"ornith:35b","input":[{"type":"item_reference","id":%q},{"role":"user","content":"three"}],"previous_response_id":%q}`, first.Output[0].ID, second.ID)
	if o := asObject(t, e.respond(third, mine...)); o.Previous != second.ID {
		t.Error(o.Previous)
	}
	const want = `"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Hello"},{"role":"user","content":"two"},` +
		`{"role":"assistant","content":"Hello"},{"role":"assistant","content":"Hello"},{"role":"user","content":"three"}]}`
	if got := string(e.last().Body); !strings.HasSuffix(got, want) {
		t.Error(got)
	}
	// A principal sees only its own.
	wantCode(t, e.respond(third, theirs...), 400, "invalid_value") // the item
	wantCode(t, e.respond(fmt.Sprintf(`{"model":"same","input":"x","previous_response_id":%q}`, first.ID), theirs...), 400, "previous_response_not_found")
	for _, path := range []string{"", "/input_items", "?stream=true"} {
		wantCode(t, e.do("GET", "/v1/responses/"+first.ID+path, "", theirs...), 404, "response_not_found")
	}
	wantCode(t, e.do("DELETE", "/v1/responses/"+first.ID, "", theirs...), 404, "response_not_found")
	wantCode(t, e.do("POST", "/v1/responses/"+first.ID+"/cancel", "", theirs...), 404, "response_not_found")
	wantCode(t, e.do("GET", "/v1/responses/"+first.ID, ""), 401, "invalid_api_key")
	// A link of the chain is deleted.
	if r := e.do("DELETE", "/v1/responses/"+first.ID, "", mine...); r.StatusCode != 200 || !strings.Contains(r.body, `"deleted":true`) {
		t.Error(r.body)
	}
	wantCode(t, e.respond(fmt.Sprintf(`{"model":"same","input":"x","previous_response_id":%q}`, second.ID), mine...), 400, "previous_response_not_found")
	// What is not stored can't be found.
	o := asObject(t, e.respond(`{"model":"ornith:35b","input":"x","store":false}`, mine...))
	wantCode(t, e.do("GET", "/v1/responses/"+o.ID, "", mine...), 404, "response_not_found")
	wantCode(t, e.do("POST", "/v1/responses/"+second.ID+"/cancel", "", mine...), 400, "invalid_request")
}

func twoPrincipals(_ *openai.Options, v *openai.View) {
	v.Tokens = []openai.Token{{Ref: "ta", SHA256: sha("a"), Principal: "pa"}, {Ref: "tb", SHA256: sha("b"), Principal: "pb"}}
}

func TestInputItemsArePaged(t *testing.T) {
	e := newEdge(t)
	e.backend = chatter
	o := asObject(t, e.respond(`{"model":"ornith:35b","input":[{"role":"user","content":"0"},{"role":"user","content":"1"},{"role":"user","content":"2"}]}`))
	page := func(query string) (ids []string, more bool) {
		r := e.do("GET", "/v1/responses/"+o.ID+"/input_items"+query, "")
		var l struct {
			Data []struct {
				ID      string
				Content []struct{ Text string }
			}
			First string `json:"first_id"`
			Last  string `json:"last_id"`
			More  bool   `json:"has_more"`
		}
		if err := json.Unmarshal([]byte(r.body), &l); err != nil || l.First != l.Data[0].ID || l.Last != l.Data[len(l.Data)-1].ID {
			t.Fatal(err, r.body)
		}
		for _, d := range l.Data {
			ids = append(ids, d.Content[0].Text, d.ID)
		}
		return ids, l.More
	}
	all, more := page("")
	if len(all) != 6 || all[0] != "2" || all[4] != "0" || more {
		t.Error(all, more)
	}
	two, more := page("?order=asc&limit=2")
	if len(two) != 4 || two[0] != "0" || !more {
		t.Error(two, more)
	}
	if rest, more := page("?order=asc&after=" + two[3]); len(rest) != 2 || rest[0] != "2" || more {
		t.Error(rest, more)
	}
	wantCode(t, e.do("GET", "/v1/responses/"+o.ID+"/input_items?limit=0", ""), 400, "invalid_request")
	wantCode(t, e.do("GET", "/v1/responses/"+o.ID+"/input_items?after=x", ""), 400, "invalid_request")
}

// A backend that was asked for a stream and answers in one piece, and the other way round.
func TestResponseOfTheOtherShape(t *testing.T) {
	e := newEdge(t)
	e.backend = answerJSON(200, plain)
	if got := types(events(t, e.respond(flowing).body)); !strings.HasSuffix(got, "output_text.delta output_text.done content_part.done output_item.done completed") {
		t.Error(got)
	}
	e.backend = answerAs("text/event-stream", 200, spoken, stopped, over)
	if o := asObject(t, e.respond(asked)); o.Status != "completed" || o.Output[0].Content[0].Text != "Hello" {
		t.Error(o)
	}
}

func TestPolicyHoldsForResponses(t *testing.T) {
	e := newEdge(t)
	e.backend = chatter
	asObject(t, e.respond(`{"model":"org/model:7b","input":"x","max_output_tokens":5000}`))
	if got := string(e.last().Body); !strings.Contains(got, `"max_tokens":100`) || !strings.Contains(got, `"temperature":0.5`) {
		t.Error(got)
	}
}

// readEvents reads events from a running stream until one of a type.
func readEvents(t *testing.T, in *bufio.Reader, until string) event {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var e event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			if e.Type == until {
				return e
			}
		}
	}
}

// A provider whose own Responses API is trusted is asked in its words; storing and the conversation stay here.
func TestTrustedResponsesAreRelayed(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) { v.Providers[0].Can = fsm.AllNeeds | fsm.NeedResponses })
	const end = `{"id":"resp_theirs","status":"completed","model":"served/ornith:35b","store":false,"output":[{"id":"msg_t","type":"message","role":"assistant","content":[{"type":"output_text","text":"Own"}]}],"usage":{"input_tokens":3,"output_tokens":1}}`
	e.backend = func(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End {
		if !strings.Contains(string(x.Body), `"stream":true`) {
			return answerJSON(200, end)(ctx, x, a)
		}
		return answerAs("text/event-stream", 200, "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{}}\n\n",
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"delta\":\"Own\"}\n\n",
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":"+end+"}\n\n")(ctx, x, a)
	}
	first := asObject(t, e.respond(asked))
	if first.ID == "resp_theirs" || first.Model != "ornith:35b" || first.Output[0].Content[0].Text != "Own" || first.Usage.Input != 3 {
		t.Error(first)
	}
	r := e.respond(fmt.Sprintf(`{"model":"ornith:35b","input":"more","stream":true,"top_k":3,"previous_response_id":%q}`, first.ID))
	list := events(t, r.body)
	if types(list) != "created in_progress output_text.delta completed" || list[3].Response.Previous != first.ID || list[3].Response.ID != list[0].Response.ID {
		t.Error(r.body)
	}
	x := e.last()
	var sent struct {
		Model string
		Store *bool
		TopK  int `json:"top_k"`
		Input []any
		Prev  *string `json:"previous_response_id"`
	}
	if err := json.Unmarshal(x.Body, &sent); err != nil || x.Path != "/v1/responses" || sent.Model != "served/ornith:35b" || *sent.Store || len(sent.Input) != 3 || sent.Prev != nil || sent.TopK != 3 {
		t.Errorf("%v %s %s", err, x.Path, x.Body)
	}
	asObject(t, e.do("GET", "/v1/responses/"+list[0].Response.ID, ""))
	e.backend = answerAs("text/event-stream", 200, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Ow\"}\n\n")
	if list := events(t, e.respond(flowing).body); list[len(list)-1].Type != "response.failed" {
		t.Error(types(list))
	}
}
