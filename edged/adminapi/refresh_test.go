package adminapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"iop/edged/adminapi"
)

func TestRefreshSendsWhatIsAsked(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.String() + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"result":"applied","revision":3}`)
	}))
	defer s.Close()
	revision := uint64(2)
	for _, c := range []struct {
		q    adminapi.RefreshRequest
		want string
	}{
		{adminapi.RefreshRequest{}, "POST /refresh "},
		{adminapi.RefreshRequest{File: []byte("f"), DryRun: true, LiveOnly: true, Expected: &revision}, "POST /refresh?dry_run=true&expected_revision=2&live_only=true f"},
	} {
		r, err := client(t, 0, s.URL).Refresh(t.Context(), c.q)
		if err != nil || r.Result != "applied" || r.Revision != 3 || got != c.want {
			t.Errorf("%q, want %q: %+v %v", got, c.want, r, err)
		}
	}
}

// A refusal of the candidate is a report; one of the edge is an error.
func TestRefreshReportsRefusals(t *testing.T) {
	for status, result := range map[int]string{409: "conflict", 422: "invalid"} {
		s := listener(t, status, "application/json", `{"result":"`+result+`","problems":[]}`)
		if r, err := client(t, 0, s.URL).Refresh(t.Context(), adminapi.RefreshRequest{}); err != nil || r.Result != result {
			t.Errorf("%d: %+v %v", status, r, err)
		}
	}
	s := listener(t, 503, "application/json", `{"error":{"code":"no_leader","message":"m","cure":"c"}}`)
	_, err := client(t, 0, s.URL).Refresh(t.Context(), adminapi.RefreshRequest{})
	var e *adminapi.Error
	if !errors.As(err, &e) || e.Code != "no_leader" {
		t.Errorf("%v", err)
	}
}

// What changes something must not be done twice: the next edge is asked only if this one can't have heard it.
func TestRefreshIsNotRepeated(t *testing.T) {
	var calls atomic.Int64
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"result":"applied"}`)
	}))
	defer good.Close()
	if _, err := client(t, 0, closedPort(t), good.URL).Refresh(t.Context(), adminapi.RefreshRequest{}); err != nil || calls.Load() != 1 {
		t.Errorf("after a closed port: %d calls, %v", calls.Load(), err)
	}
	if _, err := client(t, 300*time.Millisecond, silentPort(t), good.URL).Refresh(t.Context(), adminapi.RefreshRequest{}); err == nil || calls.Load() != 1 {
		t.Errorf("after one that heard it: %d calls, %v", calls.Load(), err)
	}
}
