package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"iop/cli"
)

func TestQueueCancel(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.EscapedPath()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(asked, "runs"):
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error":{"code":"not_waiting","message":"request runs does not wait","cure":"only what waits can be cancelled"}}`)
		case strings.Contains(asked, "orphan"):
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"code":"no_leader","message":"there is no leader","cure":"try again"}}`)
		default:
			_, _ = io.WriteString(w, `{"request":"a/b"}`)
		}
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		args     string
		code     int
		asked    string
		out, err string
	}{
		{"queue cancel a/b", 0, "POST /queue/a%2Fb/cancel", "request a/b has left the queue; its client is told canceled_by_operator.\n", ""},
		{"queue cancel a/b -o json", 0, "POST /queue/a%2Fb/cancel", `"request": "a/b"`, ""},
		{"queue cancel runs", 1, "POST /queue/runs/cancel", "", "cure: only what waits"},
		{"queue cancel orphan", cli.ExitNoLeader, "POST /queue/orphan/cancel", "", "cure: try again"},
		{"queue cancel", 2, "", "", "accepts 1 arg"},
	} {
		t.Run(c.args, func(t *testing.T) {
			asked = ""
			var out, errs bytes.Buffer
			code := cli.Run(t.Context(), cli.Deps{}, append(strings.Fields(c.args), "--edge", s.URL), nil, &out, &errs)
			if code != c.code || asked != c.asked || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
				t.Errorf("exit code %d, want %d; asked %q\n%s%s", code, c.code, asked, out.String(), errs.String())
			}
		})
	}
}
