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
