package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"iop/cli"
)

// drainEdge is an edge whose provider p1 has one request less in flight at each look, down to least.
func drainEdge(t *testing.T, least int64) (edge string, asked *atomic.Value) {
	t.Helper()
	var flight atomic.Int64
	flight.Store(3)
	asked = &atomic.Value{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/drain":
			body, _ := io.ReadAll(r.Body)
			asked.Store(string(body))
			if strings.Contains(string(body), "nobody") {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"error":{"code":"not_found","message":"no provider \"nobody\"","cure":"list them"}}`)
				return
			}
			_, _ = w.Write(body)
		case r.URL.Path == "/providers":
			n := flight.Load()
			if n > least {
				flight.Add(-1)
			}
			_, _ = fmt.Fprintf(w, `{"providers":[{"id":"p1","node":"n1","in_flight":%d},{"id":"p2","node":"n2","in_flight":9}]}`, n)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// TestUndrainSaysWhatIsDrainedStill: a provider takes nothing as long as its node is drained, and a node nothing for a provider
// that is.
func TestUndrainSaysWhatIsDrainedStill(t *testing.T) {
	t.Parallel()
	edge := edgeWith(t, map[string]string{
		"/drain":     `{"node":"n1","provider":"p1","on":false}`,
		"/nodes":     `{"nodes":[{"id":"n0","draining":true},{"id":"n1","connected":true,"draining":true}]}`,
		"/providers": `{"providers":[]}`,
	})
	if out := made(t, "providers", "undrain", "p1", "--edge", edge); out != "provider p1 is not drained any more, but its node is: it takes requests again after 'iopctl nodes undrain n1'.\n" {
		t.Error(out)
	}
	if out := made(t, "nodes", "list", "--edge", edge); !strings.Contains(out, "no, drained") || !strings.Contains(out, "yes, drained") {
		t.Error(out)
	}
	edge = edgeWith(t, map[string]string{
		"/drain":     `{"node":"n1","on":false}`,
		"/nodes":     `{"nodes":[{"id":"n1","connected":true}]}`,
		"/providers": `{"providers":[{"id":"p1","node":"n1","draining":true},{"id":"p2","node":"n1"},{"id":"p3","node":"n2","draining":true}]}`,
	})
	if out := made(t, "nodes", "undrain", "n1", "--edge", edge); out != "node n1 takes requests again, but not for what is drained by itself: 'iopctl providers undrain p1'.\n" {
		t.Error(out)
	}
}

func TestDrainWaitsUntilNothingRuns(t *testing.T) {
	for _, c := range []struct {
		args     string
		least    int64
		code     int
		asked    string
		out, err string
	}{
		{"providers drain p1", 3, 0, `{"provider":"p1","on":true}`, "provider p1 gets no new requests. Those that run go on.\n", ""},
		{"providers drain p1 --wait", 0, 0, `{"provider":"p1","on":true}`, "provider p1 gets no new requests, and nothing runs on it.\n", ""},
		{"nodes drain n1 --wait", 0, 0, `{"node":"n1","on":true}`, "node n1 gets no new requests, and nothing runs on it.\n", ""},
		{"nodes drain n1 --wait --wait-timeout 1ms", 2, cli.ExitStillRunning, `{"node":"n1","on":true}`, "still run.\n", "cure: wait longer"},
		{"providers undrain p1", 3, 0, `{"provider":"p1","on":false}`, "provider p1 takes requests again.\n", ""},
		{"providers drain p1 --wait -o json", 0, 0, `{"provider":"p1","on":true}`, `"in_flight": 0`, ""},
		{"providers drain nobody --wait", 0, 1, `{"provider":"nobody","on":true}`, "", "cure: list them"},
		{"providers drain", 0, 2, "", "", "accepts 1 arg"},
		{"providers drain p1 --wait-timeout -1s", 0, 2, "", "", "is negative"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			edge, asked := drainEdge(t, c.least)
			var out, errs bytes.Buffer
			code := cli.Run(t.Context(), cli.Deps{}, append(strings.Fields(c.args), "--edge", edge), nil, &out, &errs)
			if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, out.String(), errs.String())
			}
			if code == 0 && errs.Len() > 0 {
				t.Errorf("into a pipe it tells of its waiting: %q", errs.String())
			}
			if got, _ := asked.Load().(string); got != c.asked {
				t.Errorf("asked %s, want %s", got, c.asked)
			}
		})
	}
}
