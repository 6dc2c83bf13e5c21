package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

// journal is a log of JSON lines.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

// take returns the lines since the last call.
func (j *journal) take(t *testing.T) (lines []map[string]any) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, text := range strings.Split(strings.TrimSpace(j.buf.String()), "\n") {
		if text == "" {
			continue
		}
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	j.buf.Reset()
	return lines
}

// evictor lets the world's waiters be cancelled.
func evictor(w *world) func(context.Context, fsm.RequestID) (fsm.Outcome, error) {
	return func(_ context.Context, id fsm.RequestID) (fsm.Outcome, error) {
		if id == "leaderless" {
			return fsm.Outcome{}, errors.New("no leader")
		}
		return w.do(0, &fsm.Evict{Request: id})[0], nil
	}
}

// Each change that a caller makes is one line of the log: who, from where, what. What changes nothing is none.
func TestEveryChangeIsOneLineOfTheLog(t *testing.T) {
	w := busy(t)
	log := &journal{}
	result := adminapi.RefreshApplied
	report := func() *adminapi.RefreshReport { return &adminapi.RefreshReport{Result: result, Revision: 8} }
	s := serve(t, w, func(o *admin.Options) {
		drainable(w)(o)
		o.Evict = evictor(w)
		o.Cluster, o.Token = &replicas{}, "secret"
		o.Refresh = func(context.Context, adminapi.RefreshRequest) (*adminapi.RefreshReport, error) { return report(), nil }
		o.AddNode = func(context.Context, adminapi.NodeRequest) (*adminapi.RefreshReport, error) { return report(), nil }
		o.AddJoin = func(context.Context, adminapi.JoinRequest) (*adminapi.JoinOffer, error) {
			return &adminapi.JoinOffer{}, nil
		}
		o.Logger = slog.New(slog.NewJSONHandler(log, nil))
	})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               map[string]any // of a line; nil = no line
	}{
		{"POST", "/queue/r%2F5%20%1B%5B31m/cancel", "", 200, map[string]any{"what": "queue cancel", "request": "r/5 \x1b[31m"}},
		{"POST", "/drain", `{"provider":"mac","on":true}`, 200, map[string]any{"what": "drain", "node": "studio", "provider": "mac", "on": true}},
		{"POST", "/drain", `{"provider":"nobody","on":true}`, 404, map[string]any{"what": "drain", "result": "not_found"}},
		{"POST", "/queue/r-1/cancel", "", 409, map[string]any{"what": "queue cancel", "result": "not_waiting", "path": "/queue/r-1/cancel"}},
		{"POST", "/refresh", "x", 200, map[string]any{"what": "refresh", "revision": 8.0}},
		{"POST", "/refresh?dry_run=true", "x", 200, nil},
		{"POST", "/nodes?id=n7", "", 200, map[string]any{"what": "nodes add", "node": "n7", "revision": 8.0}},
		{"POST", "/nodes?id=n7&dry_run=true", "", 200, nil},
		{"POST", "/nodes/n7/join", "{}", 200, map[string]any{"what": "join token", "node": "n7"}},
		{"POST", "/cluster/members", `{"id":"edge-2","address":"h:1"}`, 200, map[string]any{"what": "member added", "replica": "edge-2", "address": "h:1"}},
		{"POST", "/cluster/members", `{}`, 400, map[string]any{"what": "member added", "result": "bad_request"}},
		{"DELETE", "/cluster/members/edge-2?force=true", "", 200, map[string]any{"what": "member removed", "replica": "edge-2", "force": true}},
		{"POST", "/cluster/transfer", `{"to":"edge-3"}`, 200, map[string]any{"what": "leadership handed over", "to": "edge-3"}},
		{"POST", "/cluster/verify", "", 200, nil},
		{"GET", "/queue", "", 200, nil},
	} {
		t.Run(c.method+" "+c.path+" "+c.body, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer secret")
			r.Header.Set("User-Agent", "tester/1")
			r.Header.Set(adminapi.HeaderOperator, "J%C3%BCrgen%0a%1b")
			res, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			lines := log.take(t)
			if res.StatusCode != c.status || len(lines) != min(len(c.want), 1) {
				t.Fatalf("status %d, want %d; log %v", res.StatusCode, c.status, lines)
			}
			for k, v := range c.want {
				if lines[0][k] != v {
					t.Errorf("%s=%v, want %v", k, lines[0][k], v)
				}
			}
			if c.want == nil {
				return
			}
			l := lines[0]
			level, text := "INFO", "changed by an operator"
			if c.status >= 400 {
				level, text = "WARN", "not changed by an operator"
			} else if l["result"] != "done" {
				t.Errorf("result %v", l["result"])
			}
			if l["level"] != level || l["msg"] != text || l["agent"] != "tester/1" || l["token"] != "admin" || l["operator"] != "Jürgen" ||
				!strings.HasPrefix(l["from"].(string), "127.0.0.1:") {
				t.Errorf("line %v", l)
			}
		})
	}
	result = adminapi.RefreshConflict
	if status, _ := post(t, s, "/refresh", "x"); status != 401 {
		t.Errorf("status %d without the token", status)
	}
	if lines := log.take(t); len(lines) != 1 || lines[0]["level"] != "WARN" || lines[0]["result"] != "unauthorized" || lines[0]["token"] != "none" {
		t.Errorf("an attempt without the token: %v", lines)
	}
	res, err := s.Client().Do(newRequest(t, "POST", s.URL+"/refresh", "Authorization", "Bearer secret"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if lines := log.take(t); len(lines) != 1 || lines[0]["level"] != "WARN" || lines[0]["result"] != "conflict" {
		t.Errorf("a conflict: %v", lines)
	}
}

// A caller that leaves in the middle does not make the log say that nothing was changed, nor does what fails afterwards.
func TestChangeWhoseCallerLeftIsLoggedAsDone(t *testing.T) {
	w, log := busy(t), &journal{}
	began, left, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := serve(t, w, func(o *admin.Options) {
		everything(w, log)(o)
		o.Drain = func(ctx context.Context, c *fsm.Drain) (bool, error) {
			defer close(over)
			w.do(0, c) // it is in the log now
			close(began)
			<-left
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(200 * time.Millisecond): // for the server to notice that he left
				return true, nil
			}
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-began
		leave()
	}()
	r := newRequest(t, "POST", s.URL+"/drain", "Authorization", "Bearer "+adminToken)
	r.Body = io.NopCloser(strings.NewReader(`{"node":"studio","on":true}`))
	if res, err := s.Client().Do(r.WithContext(ctx)); err == nil {
		_ = res.Body.Close()
		t.Fatal("the caller did not leave")
	}
	close(left)
	<-over
	s.Close() // it waits for the handler
	if lines := log.take(t); len(lines) != 1 || lines[0]["msg"] != "changed by an operator" || lines[0]["result"] != "done" {
		t.Errorf("log %v", lines)
	}
}

// A cluster that took a replica in and then can't be shown has taken it in.
func TestChangeThatIsDoneAndNotShownIsLoggedAsDone(t *testing.T) {
	w, log := busy(t), &journal{}
	s := serve(t, w, func(o *admin.Options) {
		everything(w, log)(o)
		o.Cluster = blind{&replicas{}}
	})
	for _, c := range [][3]string{
		{"POST", "/cluster/members", `{"id":"edge-2","address":"h:1"}`}, {"DELETE", "/cluster/members/edge-2", ""}, {"POST", "/cluster/transfer", "{}"},
	} {
		if res, _ := send(t, s, c[0], c[1], c[2], "Authorization", "Bearer "+adminToken); res.StatusCode != 500 {
			t.Fatalf("%s %s: %d", c[0], c[1], res.StatusCode)
		}
		done := 0
		for _, l := range log.take(t) {
			switch l["msg"] {
			case "changed by an operator":
				done++
			case "not changed by an operator":
				t.Errorf("%s %s: %v", c[0], c[1], l)
			}
		}
		if done != 1 {
			t.Errorf("%s %s: %d lines", c[0], c[1], done)
		}
	}
}

// blind can't be shown.
type blind struct{ *replicas }

func (blind) Show(context.Context) (*adminapi.Cluster, error) {
	return nil, errors.New("nobody answers")
}

// A waiter is taken out of the queue by its id; what runs is left alone.
func TestCancelOfAWaiter(t *testing.T) {
	w := busy(t)
	s := serve(t, w, func(o *admin.Options) { o.Evict = evictor(w) })
	c, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if done, err := c.CancelWaiter(t.Context(), "r-4"); err != nil || done.Request != "r-4" {
		t.Errorf("%+v, %v", done, err)
	}
	for id, code := range map[string]string{"r-1": "not_waiting", "r-4": "not_found", "nobody": "not_found", "leaderless": "failed"} {
		var e *adminapi.Error
		if _, err := c.CancelWaiter(t.Context(), id); !errors.As(err, &e) || e.Code != code || e.Cure == "" {
			t.Errorf("%s: %v, want %s", id, err, code)
		}
	}
	l, err := c.Queue(t.Context(), adminapi.Moment{})
	if err != nil || len(l.Waiters) != 1 {
		t.Errorf("left %+v, %v", l, err)
	}
	get(t, s, "/queue/r-4/cancel", http.StatusMethodNotAllowed)
}

// Every attempt is counted as well as logged: what was done, and what was not.
func TestAttemptsAreCounted(t *testing.T) {
	w, log := busy(t), &journal{}
	var mu sync.Mutex
	counted := map[bool]int{}
	s := serve(t, w, func(o *admin.Options) {
		everything(w, log)(o)
		o.Changed = func(_ string, done bool) {
			mu.Lock()
			defer mu.Unlock()
			counted[done]++
		}
	})
	for _, body := range []string{`{"node":"studio","on":true}`, `{"nobody":1}`, `{`} {
		r := newRequest(t, "POST", s.URL+"/drain", "Authorization", "Bearer "+adminToken)
		r.Body = io.NopCloser(strings.NewReader(body))
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	s.Close() // it waits for the handlers
	if counted[true] != 1 || counted[false] != 2 {
		t.Errorf("done and not done: %v", counted)
	}
}
