package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"iop/edged/openai/respond"
)

const responsesPath = "/v1/responses/"

// queryBodyMax bounds the body of a GET, which one SDK sends its parameters in.
const queryBodyMax = 64 << 10

// serveResponses answers what is asked of stored responses. It takes no slot.
func (s *Server) serveResponses(w http.ResponseWriter, r *http.Request) {
	who, ok := s.catalog.Load().identify(r.Header)
	if !ok {
		s.tell(w, badKey(r.Header))
		return
	}
	id, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, responsesPath), "/")
	var f *failure
	switch {
	case what == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		f = s.retrieve(w, r, who, id)
	case what == "" && r.Method == http.MethodDelete:
		f = s.forget(w, r, who, id)
	case what == "":
		f = notAllowed(w, r, "GET, HEAD, DELETE")
	case what == "cancel" && r.Method == http.MethodPost:
		f = s.cancelResponse(w, r, who, id)
	case what == "cancel":
		f = notAllowed(w, r, "POST")
	case what == "input_items" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		f = s.listItems(w, r, who, id)
	case what == "input_items":
		f = notAllowed(w, r, "GET, HEAD")
	default:
		f = unknownURL(r)
	}
	if f != nil {
		s.tell(w, f)
	}
}

// retrieve answers with a response, or with its events.
func (s *Server) retrieve(w http.ResponseWriter, r *http.Request, who caller, id string) *failure {
	v, f := readQuery(r)
	if f != nil {
		return f
	}
	got, err := s.o.Store.Get(r.Context(), who.principal, id)
	if err != nil {
		return storeFailure(err, id)
	}
	if v.Get("stream") != "true" {
		writeJSON(w, http.StatusOK, append(append([]byte(nil), got.Object...), '\n'))
		return nil
	}
	if !got.Background {
		return &failure{kind: kindMalformed, param: "stream", message: "Only responses that run in the background can be streamed again. Leave 'stream' out to get the whole response."}
	}
	from := int64(0)
	if after := v.Get("starting_after"); after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil || n < -1 {
			return &failure{kind: kindMalformed, param: "starting_after", message: "Invalid 'starting_after': expected the sequence_number of an event, but got " + strconv.Quote(shown(after)) + "."}
		}
		from = n + 1
	}
	if s.follow(w, r, who.principal, id, from) {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// readQuery reads parameters from the query, and from a JSON body: one SDK has them there, even with GET.
func readQuery(r *http.Request) (url.Values, *failure) {
	v := r.URL.Query()
	if r.ContentLength == 0 {
		return v, nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, queryBodyMax))
	if err != nil || len(b) == 0 {
		return v, nil // what did not arrive says nothing
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(b, &in) != nil {
		return nil, &failure{kind: kindJSON, message: "The body can't be read. Send the parameters in the query."}
	}
	for name, value := range in {
		if !v.Has(name) {
			v.Set(name, strings.Trim(string(value), `"`))
		}
	}
	return v, nil
}

// follow streams the events of a background response from a sequence number on, until it has ended. abort = it broke
// off, and the client must see that.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, principal, id string, from int64) (abort bool) {
	streamHeader(w.Header())
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush() // the next event may take its time; an error shows with it
	for {
		events, over, err := s.nextEvents(r.Context(), principal, id, from)
		if err != nil {
			return true
		}
		var b []byte
		for i := range events {
			b = events[i].Append(b, from)
			from++
		}
		if len(events) == 0 && !over {
			b = append(b, ": waiting\n\n"...) // as a number belongs to each event, nothing else can be said here
		}
		_ = out.SetWriteDeadline(time.Now().Add(s.o.StallTimeout)) // not every writer has one
		if _, err := w.Write(b); err != nil {
			return true
		}
		if err := out.Flush(); err != nil {
			return true
		}
		if over {
			_ = out.SetWriteDeadline(time.Time{})
			return false
		}
	}
}

// nextEvents waits for events, but not for longer than a stream may be silent: then there are none, and it is not over.
func (s *Server) nextEvents(ctx context.Context, principal, id string, from int64) ([]respond.Event, bool, error) {
	wait := ctx
	if s.o.QueueKeepalive > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, s.o.QueueKeepalive)
		defer cancel()
	}
	events, over, err := s.o.Store.Events(wait, principal, id, from)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, false, nil
	}
	return events, over, err
}

// forget deletes a response; one that runs is cancelled.
func (s *Server) forget(w http.ResponseWriter, r *http.Request, who caller, id string) *failure {
	if err := s.o.Store.Delete(r.Context(), who.principal, id); err != nil {
		return storeFailure(err, id)
	}
	s.cancelJob(who.principal, id)
	writeJSON(w, http.StatusOK, append(append([]byte(`{"id":`), appendQuoted(nil, id)...), ",\"object\":\"response\",\"deleted\":true}\n"...))
	return nil
}

// cancelResponse ends a background response. One that has ended stays as it is.
func (s *Server) cancelResponse(w http.ResponseWriter, r *http.Request, who caller, id string) *failure {
	got, err := s.o.Store.Get(r.Context(), who.principal, id)
	switch {
	case err != nil:
		return storeFailure(err, id)
	case !got.Background:
		return &failure{kind: kindMalformed, param: "response_id", message: "Only responses that run in the background can be cancelled. End the request itself to cancel another one."}
	case !got.Status.Final():
		object, last := respond.Cancel(got.Object)
		err = s.o.Store.Progress(r.Context(), who.principal, id, Progress{Status: respond.Cancelled, Object: object, Events: []respond.Event{last}})
		if err != nil && !errors.Is(err, ErrEnded) {
			return storeFailure(err, id)
		}
		s.cancelJob(who.principal, id)
		if got, err = s.o.Store.Get(r.Context(), who.principal, id); err != nil {
			return storeFailure(err, id)
		}
	}
	writeJSON(w, http.StatusOK, append(append([]byte(nil), got.Object...), '\n'))
	return nil
}

// Bounds of a list of items.
const (
	itemsPage = 20
	itemsMax  = 100
)

// listItems answers with the input items of a response, the last one first unless order says otherwise.
func (s *Server) listItems(w http.ResponseWriter, r *http.Request, who caller, id string) *failure {
	got, err := s.o.Store.Get(r.Context(), who.principal, id)
	if err != nil {
		return storeFailure(err, id)
	}
	v := r.URL.Query()
	limit := itemsPage
	if l := v.Get("limit"); l != "" {
		if limit, err = strconv.Atoi(l); err != nil || limit < 1 || limit > itemsMax {
			return &failure{kind: kindMalformed, param: "limit", message: "Invalid 'limit': expected an integer from 1 to 100, but got " + strconv.Quote(shown(l)) + "."}
		}
	}
	items := slices.Clone(got.Input)
	switch order := v.Get("order"); order {
	case "asc":
	case "", "desc":
		slices.Reverse(items)
	default:
		return &failure{kind: kindMalformed, param: "order", message: "Invalid 'order': " + strconv.Quote(shown(order)) + ". Supported values are: 'asc' and 'desc'."}
	}
	if after := v.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(it json.RawMessage) bool { return respond.ItemID(it) == after })
		if at < 0 {
			return &failure{kind: kindMalformed, param: "after", message: "There is no item " + strconv.Quote(shown(after)) + " in the input of this response."}
		}
		items = items[at+1:]
	}
	more := len(items) > limit
	items = items[:min(limit, len(items))]
	writeJSON(w, http.StatusOK, append(respond.List(items, more), '\n'))
	return nil
}
