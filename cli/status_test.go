package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// edgeWith is an edge that answers with the texts, and 404 otherwise.
func edgeWith(t *testing.T, texts map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, ok := texts[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"error":{"code":"not_found","message":"no such page","cure":"upgrade"}}`
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func statusOf(edge, rest string) string {
	return `{"edge":"` + edge + `","role":"leader","leader":"` + edge + `","term":1,"applied_index":9,"lag":0,"revision":1,` + rest + `}`
}

// TestStatusSaysWhatToLookAt: at three in the morning the first lines say what is wrong, and what to type next.
func TestStatusSaysWhatToLookAt(t *testing.T) {
	t.Parallel()
	well := `"queue":{"pending":0,"max":16,"long_pending":0},"providers":[{"id":"p1","node":"n1","connected":true,"status":"available","health":"healthy"}],"links":[]`
	for _, c := range []struct {
		name  string
		texts map[string]string
		says  []string // "" = nothing to look at
	}{
		{"all is well", map[string]string{"/status": statusOf("e1", well)}, nil},
		{"no leader", map[string]string{"/status": `{"edge":"e1","role":"candidate","leader":"",` + well + `}`}, []string{"There is no leader", "-> iopctl cluster members"}},
		{
			"a silent replica",
			map[string]string{
				"/status": statusOf("e1", well), "/cluster": `{"members":[{"id":"e1","voter":true,"role":"leader"},{"id":"e2","voter":true}]}`,
			},
			[]string{"No answer from e2, of 2 replicas"},
		},
		{
			"a majority that hangs by one",
			map[string]string{
				"/status": statusOf("e1", well), "/cluster": `{"members":[{"id":"e1","voter":true,"role":"leader"},{"id":"e2","voter":true,"role":"follower"},{"id":"e3","voter":true}]}`,
			},
			[]string{"No answer from e3, of 3 replicas", "If one more of the 2 that vote is lost, nothing is admitted."},
		},
		{
			"a majority that is lost",
			map[string]string{
				"/status": `{"edge":"e1","role":"candidate","leader":"",` + well + `}`, "/cluster": `{"members":[{"id":"e1","voter":true,"role":"candidate"},{"id":"e2","voter":true},{"id":"e3","voter":true}]}`,
			},
			[]string{"There is no leader", "No answer from e2, e3", "That leaves 1 of 3 votes, which is no majority. Start edged there: 1 more will do.", "-> iopctl cluster recover --help"},
		},
		{
			"a newcomer that is not there yet",
			map[string]string{
				"/status": statusOf("e1", well), "/cluster": `{"members":[{"id":"e1","voter":true,"role":"leader"},{"id":"e2"}]}`,
			},
			[]string{"No answer from e2, of 2 replicas (1 vote)."},
		},
		{"a full queue", map[string]string{"/status": statusOf("e1", `"queue":{"pending":16,"max":16},"providers":[],"links":[]`)}, []string{"The queue is full: what comes beyond 16"}},
		{"a queue that fills", map[string]string{"/status": statusOf("e1", `"queue":{"pending":13,"max":16},"providers":[],"links":[]`)}, []string{"nearly full"}},
		{"waiters", map[string]string{
			"/status": statusOf("e1", `"queue":{"pending":3,"max":16},"providers":[{"id":"p1","node":"n1","connected":true,"status":"full","health":"healthy"}],"links":[]`),
			"/queue": `{"pending":3,"waiters":[` +
				`{"position":1,"request":"r-1","model":"m","class":"normal","age_ms":9000,"candidates":[{"provider":"p1","reason":"full"},{"provider":"p2","reason":"principal_limit"}]},` +
				`{"position":2,"request":"r-2","model":"m","class":"normal","age_ms":1000,"candidates":[{"provider":"p1","reason":"full"},{"provider":"p2","reason":"principal_limit"}]},` +
				`{"position":3,"request":"r-3","model":"x","class":"normal","age_ms":1000,"candidates":[]}]}`,
		}, []string{
			"2 requests wait for model m (normal), for 9.0s: p1 is full; p2 is not for its principal now, which has as many slots as it may.  -> iopctl requests explain r-1",
			"1 request waits for model x (normal), for 1.0s: no provider serves it.",
		}},
		{
			"a node is gone",
			map[string]string{"/status": statusOf("e1", `"queue":{"pending":0,"max":16},"providers":[{"id":"p1","node":"n1","status":"unavailable"},{"id":"p2","node":"n1","status":"unavailable"}],"links":[]`)},
			[]string{"Node n1 is not connected: p1, p2 can't be used", "-> iopctl nodes show n1"},
		},
		{
			"degraded and drained",
			map[string]string{"/status": statusOf("e1", `"queue":{"pending":0,"max":16},"providers":[`+
				`{"id":"p1","node":"n1","connected":true,"status":"degraded","health":"degraded","cause":"GET /health: 503"},`+
				`{"id":"p2","node":"n1","connected":true,"status":"draining","health":"healthy","draining":true,"in_flight":1}],"links":[]`)},
			[]string{"Provider p1 on n1 is degraded: GET /health: 503.", "Provider p2 on n1 is drained: 1 request still runs.  -> iopctl providers undrain p2"},
		},
		{
			"a drained node", // undraining its provider would change nothing
			map[string]string{
				"/status": statusOf("e1", `"queue":{"pending":0,"max":16},"providers":[{"id":"p1","node":"n1","connected":true,"status":"draining","health":"healthy","draining":true}],"links":[]`),
				"/nodes":  `{"nodes":[{"id":"n1","connected":true,"draining":true}]}`,
			},
			[]string{"! Node n1 is drained: nothing runs on it.  -> iopctl nodes undrain n1\n\nPROVIDER"},
		},
		{
			"slots of lost links",
			map[string]string{"/status": statusOf("e1", `"queue":{"pending":0,"max":16},"providers":[],"links":[{"node":"n1","edge":"e1","generation":1,"state":"fenced","leases":2}]`)},
			[]string{"2 slots are held by lost links"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := made(t, "status", "--edge", edgeWith(t, c.texts))
			for _, want := range c.says {
				if !strings.Contains(out, "! ") || !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if len(c.says) == 0 && strings.Contains(out, "!") {
				t.Errorf("there is nothing to look at:\n%s", out)
			}
		})
	}
}

// Many reasons of one kind don't fill the screen.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	var waiters, providers []string
	for i := range 100 {
		waiters = append(waiters, fmt.Sprintf(`{"position":%d,"request":"r-%d","model":"m%d","class":"normal","candidates":[]}`, i+1, i, i))
		providers = append(providers, fmt.Sprintf(`{"id":"p%d","node":"n%d","connected":%v,"status":"degraded","health":"degraded"}`, i, i, i%2 == 0))
	}
	out := made(t, "status", "--edge", edgeWith(t, map[string]string{
		"/status": statusOf("e1", `"queue":{"pending":100,"max":1000},"providers":[`+strings.Join(providers, ",")+`],"links":[]`),
		"/queue":  `{"pending":100,"waiters":[` + strings.Join(waiters, ",") + `]}`,
	}))
	if n := strings.Count(out, "\n! "); n > 20 {
		t.Errorf("%d lines to look at:\n%s", n, out)
	}
}

// TestStatusOfSeveralEdges: the first that is named and answers is shown; one that hangs does not hold the others up, and those that
// don't answer are named. If none does, all are.
func TestStatusOfSeveralEdges(t *testing.T) {
	t.Parallel()
	well := `"queue":{"pending":0,"max":16,"long_pending":0},"providers":[],"links":[]`
	first, second := edgeWith(t, map[string]string{"/status": statusOf("e1", well)}), edgeWith(t, map[string]string{"/status": statusOf("e2", well)})
	over := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over); hanging.Close() })
	locked := serve(t, func(string) (int, string) {
		return 401, `{"error":{"code":"unauthorized","message":"the admin token is missing or wrong","cure":"--token or IOP_TOKEN"}}`
	})
	nobody := closedPort(t)
	for _, c := range []struct {
		edges string
		code  int
		says  []string
	}{
		{first + "," + second, 0, []string{"Edge     e1 (leader)"}},
		{nobody + "," + second, 0, []string{"Edge     e2 (leader)", "! No answer from the edge at " + nobody + ": ", "connection refused"}},
		{hanging.URL + "," + hanging.URL + "," + second, 0, []string{"Edge     e2 (leader)", "No answer from the edge at " + hanging.URL + ": no answer yet"}},
		{locked + "," + second, 0, []string{"Edge     e2 (leader)", "the admin token is missing or wrong"}},
		{nobody + "," + locked, 1, []string{"the admin token is missing or wrong", "cure: --token or IOP_TOKEN"}},
		{nobody + "," + nobody, 1, []string{"no edge answered: " + nobody + ": ", "cure: start edged"}},
	} {
		// Without a bound, a wait for the one that hangs would never end.
		code, out, errs := run(t, "status", "--timeout", "0", "--edge", c.edges)
		for _, want := range c.says {
			if code != c.code || !strings.Contains(out+errs, want) {
				t.Errorf("%s: code %d, no %q in\n%s%s", c.edges, code, want, out, errs)
			}
		}
	}
}
