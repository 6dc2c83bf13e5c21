package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"iop/cli"
)

// feed is an edge whose feed ends after one picture each time it is asked.
func feed(t *testing.T, calls *atomic.Int64) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: whole\ndata: {\"seq\":1,\"at_ms\":1767225600000,\"edge\":\"e\",\"leases\":[{\"id\":1,\"request\":\"r-1\",\"model\":\"m\",\"provider\":\"p\",\"state\":%q}]}\n\n",
			map[bool]string{true: "held", false: "fencing"}[n == 1])
		if n == 1 {
			_, _ = fmt.Fprint(w, "event: bye\ndata: {}\n\n")
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// TestWatchGoesOnAfterTheEdge: an edge that stops is called again, and what is different then is told as a change, not as new.
func TestWatchGoesOnAfterTheEdge(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var errs strings.Builder
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &linesThen{n: 3, then: stop}
	code := cli.Run(ctx, cli.Deps{}, []string{"leases", "watch", "--edge", feed(t, &calls)}, nil, out, &errs)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code != 0 || len(lines) != 3 || calls.Load() != 2 {
		t.Fatalf("code %d, %d calls: %s%s", code, calls.Load(), out.String(), errs.String())
	}
	for i, want := range []string{"  there    lease 1  r-1", "  lost     the edge stops; calling again", "  changed  lease 1  r-1  m on p  fencing"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], want)
		}
	}
}

// What can't be watched is said, with its exit code.
func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	old := edgeWith(t, nil)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"leases watch --edge " + closedPort(t), cli.ExitFailure, "connection refused"},
		{"leases watch --edge " + old, cli.ExitFailure, "has no live feed"},
		{"queue watch -o yaml", cli.ExitUsage, "-o table, wide or json"},
		{"queue watch --every 1ms", cli.ExitUsage, "250ms to 10s"},
		{"queue watch --for -1s", cli.ExitUsage, "negative"},
	} {
		if code, _, errs := run(t, strings.Fields(c.args)...); code != c.code || !strings.Contains(errs, c.says) || !strings.Contains(errs, "cure:") {
			t.Errorf("iopctl %s: code %d: %s", c.args, code, errs)
		}
	}
}
