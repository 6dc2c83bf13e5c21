package e2e

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMainJobOnARealBackend: a real llama-server with a model that counts: 50 requests on capacity 4, half of them
// through each of two names, each gets 300 numbers in order, streamed. Skipped without IOP_LLAMA_SERVER (the command that
// runs programs of llama.cpp) and IOP_LLAMA_MODEL (the counting model).
func TestMainJobOnARealBackend(t *testing.T) {
	server, model := os.Getenv("IOP_LLAMA_SERVER"), os.Getenv("IOP_LLAMA_MODEL")
	if server == "" || model == "" {
		t.Skip("no IOP_LLAMA_SERVER and IOP_LLAMA_MODEL")
	}
	t.Parallel()
	w := newEmptyWorld(t, layout{})
	url := startLlama(t, w, server, model)
	w.layout = layout{
		providers: []provider{{id: "llama", url: url, kind: "llamacpp", capacity: 4}},
		models:    map[string][]string{"counter": {"llama"}, "counter-too": {"llama"}},
	}
	w.startEdge()
	w.startNode("n1")
	w.awaitLink("n1")
	want := make([]string, 300)
	for i := range want {
		want[i] = fmt.Sprint(i + 1)
	}
	var flights []*flight
	for i := range 50 {
		name := []string{"counter", "counter-too"}[i%2]
		flights = append(flights, w.start(ask{model: name, tag: fmt.Sprint("r", i), stream: true, prompt: "count"}))
	}
	peak := 0
	await(t, "all 50 are answered", func() bool {
		peak = max(peak, w.provider("llama").InFlight)
		return !slices.ContainsFunc(flights, func(f *flight) bool { return !f.over() })
	})
	for i, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
		if got := strings.Fields(a.text()); !slices.Equal(got, want) {
			t.Errorf("%s got %d numbers: %.200q", a.tag, len(got), a.text())
		}
		if name := []string{"counter", "counter-too"}[i%2]; modelOf(&a) != name {
			t.Errorf("%s asked %s, answered as %q", a.tag, name, modelOf(&a))
		}
	}
	if peak != 4 {
		t.Errorf("in flight were at most %d, want 4", peak)
	}
	w.awaitIdle()
	w.grants = 50
}

// startLlama starts a llama-server, with more arguments if there are any, on a free port and returns its base URL once it is well.
func startLlama(t *testing.T, w *world, command, model string, more ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // llama-server can't take a listener; the port is free for the moment
	_, port, _ := net.SplitHostPort(address)
	args := []string{
		"-m", model, "--alias", served("llama"), "--host", "127.0.0.1", "--port", port,
		"-c", "65536", "-np", "4", "-t", "1", "-tb", "1", "--jinja", "--no-ui",
	}
	args = append(args, more...)
	if !strings.HasSuffix(command, "llama-server") {
		args = append([]string{"llama-server"}, args...)
	}
	p := w.track(spawn(t, "llama-server", nil, command, args...))
	await(t, "llama-server is well", func() bool {
		_, err := tryFetch(address, "/health")
		return err == nil || !p.running()
	})
	if !p.running() {
		t.Fatal("llama-server ended")
	}
	return "http://" + address + "/v1"
}
