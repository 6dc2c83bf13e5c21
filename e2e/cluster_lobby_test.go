package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestClusterStartingEdgeAnswers: a replica that waits for the others let its clients, its probes and iopctl hang. It says
// that it is starting, and serves all as ever once the others are there.
func TestClusterStartingEdgeAnswers(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newEmptyCluster(t, shared(b, 2), 3)
	w.launch(0)
	e := w.at(0).edge
	await(t, "it waits for the others", func() bool { return e.says("missing=") })
	client := &http.Client{Timeout: 10 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	get := func(address, path string) (status int, body string) {
		res, err := client.Get("http://" + address + path)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return 0, err.Error()
		}
		return res.StatusCode, string(text)
	}
	for _, x := range []struct {
		address, path string
		status        int
		says          string
	}{
		{e.openai, "/v1/models", 503, `"code":"no_leader"`},
		{e.openai, "/readyz", 503, `"code":"no_leader"`},
		{e.openai, "/healthz", 200, `"ok"`},
		{e.admin, "/status", 503, `"code":"starting"`},
		{e.admin, "/healthz", 200, `"ok"`},
	} {
		if status, body := get(x.address, x.path); status != x.status || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s; want %d with %s", x.path, status, body, x.status, x.says)
		}
	}
	w.launch(1)
	w.launch(2)
	w.awaitAll()
	w.startNodes()
	for i := range w.replicas {
		w.at(i).want(200, ask{tag: w.id(i), model: "ornith-fast"})
	}
	if status, body := get(e.admin, "/status"); status != 200 {
		t.Errorf("status of the edge that waited: %d %s", status, body)
	}
}
