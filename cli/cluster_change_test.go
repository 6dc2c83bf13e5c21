package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRemoveShowsWhoIsLeft: the edge that answers may hear of the change later than the leader.
func TestRemoveShowsWhoIsLeft(t *testing.T) {
	var looks atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		members := `{"id":"edge-1"},{"id":"edge-3"}`
		if r.Method == http.MethodGet && looks.Add(1) > 1 {
			members = `{"id":"edge-1"}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"members":[` + members + `]}`))
	}))
	defer s.Close()
	code, out, errs := run(t, "cluster", "remove", "edge-3", "--edge", strings.TrimPrefix(s.URL, "http://"))
	if code != 0 || !strings.Contains(out, "edge-1") || strings.Contains(out, "edge-3") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// TestAddShowsTheNewcomer: 'cluster add' said of the replica that it had just taken in that it is no member.
func TestAddShowsTheNewcomer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		members := `{"id":"edge-1","voter":true,"role":"leader"}`
		if r.Method == http.MethodGet {
			members += `,{"id":"edge-2","error":"connection refused"}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"members":[` + members + `]}`))
	}))
	defer s.Close()
	edge := strings.TrimPrefix(s.URL, "http://")
	code, out, errs := run(t, "cluster", "add", "edge-2", "gw2:7400", "--edge", edge)
	if code != 0 || !strings.Contains(out, "it does not answer yet (connection refused)") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	// Nobody is there: what to do is said.
	code, out, errs = run(t, "cluster", "add", "edge-2", "gw2:7400", "--wait", "--wait-timeout", "50ms", "--edge", edge)
	if code != 1 || !strings.Contains(errs, "start edged there") || !strings.Contains(errs, "iopctl cluster remove edge-2") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}
