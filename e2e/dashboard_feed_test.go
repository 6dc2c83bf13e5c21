package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"iop/edged/adminapi"
	"iop/edged/dashboard"
)

// feigned is an admin listener with the real page and a feed that the test writes: for what no real edge says on command.
type feigned struct {
	*httptest.Server
	whole   func() adminapi.Frame
	changes chan adminapi.Frame // sent to whoever reads the feed, numbered unless they have a number
	viewers atomic.Int64        // connections to the feed so far
}

func newFeigned(t *testing.T, whole func() adminapi.Frame) *feigned {
	f := &feigned{whole: whole, changes: make(chan adminapi.Frame)}
	mux := http.NewServeMux()
	page := dashboard.Handler()
	mux.Handle("/{$}", page)
	mux.Handle("/ui/", page)
	mux.HandleFunc("/live", f.live)
	mux.HandleFunc("/requests/{id}", func(w http.ResponseWriter, r *http.Request) { writeAs(w, feignedRequest(r.PathValue("id"))) })
	mux.HandleFunc("/config/history", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := json.Marshal(hostile)
		writeAs(w, adminapi.ConfigHistory{Revisions: []adminapi.ConfigRevision{{
			Revision: 2, Time: time.Now(), Edge: hostile, Source: hostile, ChangesLeft: 3,
			Changes: []adminapi.ChangedPath{{Path: hostile, Old: json.RawMessage("1"), New: name}},
		}}})
	})
	mux.HandleFunc("/usage", func(w http.ResponseWriter, _ *http.Request) {
		writeAs(w, adminapi.UsageReport{By: []string{"principal"}, Rows: []adminapi.UsageRow{{Principal: hostile, Requests: 3, Prompt: 5, Completion: 7}}})
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *feigned) address() string { return strings.TrimPrefix(f.URL, "http://") }

func (f *feigned) live(w http.ResponseWriter, r *http.Request) {
	f.viewers.Add(1)
	w.Header().Set("Content-Type", "text/event-stream")
	frame := f.whole()
	frame.Whole, frame.Seq = true, 1
	seq := uint64(1)
	for {
		body, _ := json.Marshal(frame)
		kind := "change"
		if frame.Whole {
			kind = "whole"
		}
		if _, err := fmt.Fprintf(w, "event: %s\nid: %d\ndata: %s\n\n", kind, frame.Seq, body); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case frame = <-f.changes:
		}
		if frame.Seq == 0 {
			seq++
			frame.Seq = seq
		}
	}
}

func writeAs(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// feignedFrame is the head of a frame.
func feignedFrame(max int) adminapi.Frame {
	return adminapi.Frame{
		AtMS: time.Now().UnixMilli(), Edge: "edge-1", Version: "test", Role: "leader", Leader: "edge-1", Term: 1, AppliedIndex: 10, Revision: 2,
		Actions: adminapi.ActionsAllowed, Queue: adminapi.Queue{Max: max},
	}
}

func feignedRequest(id string) adminapi.Request {
	return adminapi.Request{
		Request: id, State: "waiting", Model: hostile, Class: "normal", EnqueuedAt: time.Now(), Excluded: []string{},
		Waiter: &adminapi.Waiter{Position: 1, Request: id, Model: hostile, Class: "normal", Edge: hostile, State: "waiting", Candidates: []adminapi.Candidate{}},
		Explanation: &adminapi.Explanation{
			AheadCount: 1, Ahead: []adminapi.Ahead{{Position: 1, Request: hostile, Model: hostile}},
			Candidates: []adminapi.ExplainedCandidate{{Candidate: adminapi.Candidate{Provider: hostile, Reason: hostile}, Node: hostile, Needed: hostile}},
		},
	}
}
