package admin_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends a call and gives the status and, of a failure, the error.
func ask(t *testing.T, c *http.Client, req *http.Request) (int, *adminapi.Error) {
	t.Helper()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusOK {
		return res.StatusCode, nil
	}
	var e adminapi.ErrorBody
	if err := json.Unmarshal(body, &e); err != nil || e.Error == nil {
		t.Fatalf("%s %s: %s: not an error body: %q", req.Method, req.URL, res.Status, body)
	}
	if e.Error.Code == "" || e.Error.Message == "" || e.Error.Cure == "" {
		t.Errorf("%s %s: incomplete error: %s", req.Method, req.URL, body)
	}
	return res.StatusCode, e.Error
}

func newRequest(t *testing.T, method, url string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	return req
}

func TestRefusals(t *testing.T) {
	s := serve(t, busy(t), nil)
	for _, c := range []struct {
		method, path string
		status       int
		code, says   string
	}{
		{"GET", "/nothing", 404, "not_found", "/nothing"},
		{"GET", "/v1/models", 404, "not_found", "/v1/models"},
		{"POST", "/v1/chat/completions", 404, "not_found", "this is the admin listener"},
		{"POST", "/nothing", 404, "not_found", "/nothing"},
		{"GET", "/providers/nobody", 404, "not_found", "the configuration has none of that name"},
		{"POST", "/status", 405, "method_not_allowed", "POST"},
		{"DELETE", "/leases/1", 405, "method_not_allowed", "DELETE"},
		{"POST", "/watch", 405, "method_not_allowed", "POST"},
		{"GET", "/metrics", 404, "not_found", "/metrics"},
		{"GET", "/leases/99", 404, "not_found", `"99"`},
		{"GET", "/leases/r-4", 404, "not_found", "number 1 in the queue"},
		{"GET", "/requests/r-9", 404, "not_found", `"r-9"`},
		{"GET", "/requests/", 404, "not_found", `""`},
	} {
		status, e := ask(t, s.Client(), newRequest(t, c.method, s.URL+c.path))
		if status != c.status || e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s %s: %d %+v, want %d %s with %q", c.method, c.path, status, e, c.status, c.code, c.says)
		}
	}
}

func TestLeaseByRequestAndByID(t *testing.T) {
	w := busy(t)
	s := serve(t, w, nil)
	byID, byRequest := get(t, s, "/leases/1", 200), get(t, s, "/leases/r-1", 200)
	if string(byID) != string(byRequest) {
		t.Errorf("by id %s, by request %s", byID, byRequest)
	}
	// An id that a client chose may hold anything.
	if body := get(t, s, "/requests/r%2F5%20%1B%5B31m", 200); !strings.Contains(string(body), `"position":2`) {
		t.Errorf("%s", body)
	}
}

// A request whose id is a number is found if no lease has that id.
func TestRequestWithNumberForName(t *testing.T) {
	w := newWorld(t)
	w.configure()
	s := w.open("edge-1")
	w.link(s, "studio")
	w.admit(s, "77", "agent", fsm.ClassNormal, fsm.Granted)
	if body := get(t, serve(t, w, nil), "/leases/77", 200); !strings.Contains(string(body), `"id":1,"request":"77"`) {
		t.Errorf("%s", body)
	}
}

func TestHealthz(t *testing.T) {
	var failed error
	s := serve(t, newWorld(t), func(o *admin.Options) {
		o.Healthy = func() error { return failed }
		o.Token = "secret"
	})
	if body := get(t, s, "/healthz", 200); strings.TrimSpace(string(body)) != `{"status":"ok"}` {
		t.Errorf("%s", body)
	}
	failed = errors.New("write log: no space left on device")
	status, e := ask(t, s.Client(), newRequest(t, "GET", s.URL+"/healthz"))
	if status != 503 || !strings.Contains(e.Message, "no space left") {
		t.Errorf("%d %+v", status, e)
	}
}

func TestMetricsIsServed(t *testing.T) {
	s := serve(t, newWorld(t), func(o *admin.Options) {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "iop_up 1\n") })
	})
	res, err := s.Client().Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if body, _ := io.ReadAll(res.Body); string(body) != "iop_up 1\n" {
		t.Errorf("%q", body)
	}
}

// The names follow the revision that the numbers are of.
func TestNamesFollowTheRevision(t *testing.T) {
	w := newWorld(t)
	s := serve(t, w, nil)
	if body := get(t, s, "/nodes", 200); strings.Contains(string(body), "studio") {
		t.Fatalf("%s", body)
	}
	w.configure()
	if body := get(t, s, "/nodes", 200); !strings.Contains(string(body), `"alias":"맥 스튜디오"`) {
		t.Errorf("%s", body)
	}
}

func TestUnreadableDocument(t *testing.T) {
	w := newWorld(t)
	w.do(0, &fsm.ApplyConfig{Document: []byte("{"), Force: true})
	status, e := ask(t, serve(t, w, nil).Client(), newRequest(t, "GET", serve(t, w, nil).URL+"/status"))
	if status != 500 || e.Code != "failed" || !strings.Contains(e.Message, "revision 1") {
		t.Errorf("%d %+v", status, e)
	}
}
