package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/edged/adminapi"
)

// fetch reads a page of the admin listener.
func fetch(t testing.TB, address, path string) []byte {
	t.Helper()
	body, err := tryFetch(address, path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func tryFetch(address, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, res.Status, body)
	}
	return body, err
}

func fact[T any](w *world, path string) T {
	w.t.Helper()
	var v T
	if err := json.Unmarshal(fetch(w.t, w.edge.admin, path), &v); err != nil {
		w.t.Fatalf("read GET %s: %v", path, err)
	}
	return v
}

func (w *world) status() adminapi.Status {
	w.t.Helper()
	return fact[adminapi.Status](w, "/status")
}

// linkRow is a node's link in GET /nodes.
type linkRow = adminapi.NodeLink

// tryStatus is status of an edge that may not answer.
func (w *world) tryStatus() (s adminapi.Status, err error) {
	text, err := tryFetch(w.edge.admin, "/status")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (w *world) leases() []adminapi.Lease {
	w.t.Helper()
	return fact[adminapi.LeaseList](w, "/leases").Leases
}

func (w *world) waiters() []adminapi.Waiter {
	w.t.Helper()
	return fact[adminapi.WaiterList](w, "/queue").Waiters
}

func (w *world) pending() int { w.t.Helper(); return w.status().Queue.Pending }

// provider returns a provider's row.
func (w *world) provider(id string) adminapi.Provider {
	w.t.Helper()
	for _, p := range w.status().Providers {
		if p.ID == id {
			return p
		}
	}
	w.t.Fatalf("status lists no provider %s", id)
	return adminapi.Provider{}
}

// node returns a node's row.
func (w *world) node(id string) adminapi.Node {
	w.t.Helper()
	for _, n := range fact[adminapi.NodeList](w, "/nodes").Nodes {
		if n.ID == id {
			return n
		}
	}
	w.t.Fatalf("no node %s is listed", id)
	return adminapi.Node{}
}

// link returns the generation of a node's ready link; 0 = it has none.
func (w *world) link(id string) uint64 {
	w.t.Helper()
	for _, l := range w.node(id).Links {
		if l.State == "ready" {
			return l.Generation
		}
	}
	return 0
}

// awaitLink waits until a node is ready and returns its generation.
func (w *world) awaitLink(id string) uint64 {
	w.t.Helper()
	var g uint64
	await(w.t, "node "+id+" has a ready link", func() bool { g = w.link(id); return g != 0 })
	return g
}

func (w *world) awaitPending(n int) {
	w.t.Helper()
	await(w.t, fmt.Sprintf("%d requests are pending", n), func() bool { return w.pending() == n })
}

func (w *world) awaitLeases(n int) []adminapi.Lease {
	w.t.Helper()
	var l []adminapi.Lease
	await(w.t, fmt.Sprintf("%d leases are held", n), func() bool { l = w.leases(); return len(l) == n })
	return l
}

// awaitIdle waits until nothing is held or pending, and checks that every counter says so.
func (w *world) awaitIdle() {
	w.t.Helper()
	// What a client sent before it left may come to the edge only now; so all is looked at in one picture.
	await(w.t, "nothing is held or pending, every provider is at rest", func() bool {
		s := w.status()
		busy := slices.ContainsFunc(s.Providers, func(p adminapi.Provider) bool {
			return p.InFlight != 0 || p.LongInFlight != 0 || p.Queued != 0 || p.LongQueued != 0
		})
		return !busy && s.Queue.Pending == 0 && len(w.leases()) == 0
	})
	if n := w.metric("iop_gate_refusals_total"); n != 0 {
		w.t.Errorf("a node's gate had to refuse %v times: a lease was wrong", n)
	}
}

// iopctl runs the command line and returns all that it says; it fails the test if the exit code is not the wanted one.
func (w *world) iopctl(code int, args ...string) string {
	w.t.Helper()
	out, errs := w.iopctlBoth(code, args...)
	return out + errs
}

// iopctlBoth is iopctl with stdout and stderr apart.
func (w *world) iopctlBoth(code int, args ...string) (out, errs string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(w.t, "iopctl"), args...)
	cmd.Env = append(cmd.Environ(), "IOP_EDGE="+w.adminAddress())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code tells
	if got := cmd.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("iopctl %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

func (w *world) adminAddress() string {
	if w.edge == nil {
		return "127.0.0.1:1"
	}
	return w.edge.admin
}

// metric sums the samples of a metric whose line contains all the given parts.
func (w *world) metric(name string, parts ...string) float64 {
	w.t.Helper()
	sum := 0.0
lines:
	for line := range strings.Lines(string(fetch(w.t, w.edge.admin, "/metrics"))) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue lines
			}
		}
		var v float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v); err == nil {
			sum += v
		}
	}
	return sum
}

// since reports how long something took, in a form for failures.
func since(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }
