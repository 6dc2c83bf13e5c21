package admin_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// get wants a JSON answer of the status.
func get(t *testing.T, s *httptest.Server, path string, status int) []byte {
	t.Helper()
	res, err := s.Client().Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("GET %s: %s, %s\n%s", path, res.Status, res.Header.Get("Content-Type"), body)
	}
	return body
}

// TestAnswers holds each answer of a busy world. The files are also what the tests of iopctl are fed with.
func TestAnswers(t *testing.T) {
	s := serve(t, busy(t), nil)
	for name, path := range map[string]string{
		"status": "/status", "providers": "/providers", "nodes": "/nodes", "models": "/models", "leases": "/leases",
		"queue": "/queue", "lease": "/leases/1", "request_waiting": "/requests/r-4", "request_held": "/requests/r-2",
		"provider": "/providers/mac",
	} {
		t.Run(name, func(t *testing.T) { golden(t, name+".json", get(t, s, path, http.StatusOK)) })
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got, -update rewrites it):\n%s", file, diff)
	}
}

// TestKeys holds the keys that scripts rely on, exactly. They never change, whatever the golden files say.
func TestKeys(t *testing.T) {
	s := serve(t, busy(t), nil)
	const provider = "node id type connected status health enabled draining generation capacity in_flight long_capacity " +
		"long_in_flight queued long_queued priority"
	for _, c := range []struct{ path, at, keys string }{
		{"/status", "", "edge role leader term applied_index lag revision queue providers links"},
		{"/status", "queue", "pending max long_pending"},
		{"/status", "providers", provider},
		{"/providers", "", "providers"},
		{"/providers", "providers", provider},
		{"/nodes", "", "nodes"},
		{"/nodes", "nodes", "id alias connected links version"},
		{"/nodes", "nodes links", "edge generation state"},
		{"/leases", "", "leases"},
		{"/leases", "leases", "id request model provider node class state edge session generation granted_index age_ms"},
		{"/queue", "", "pending waiters"},
		{"/queue", "waiters", "position request model class edge state enqueued_index age_ms deadline_in_ms candidates"},
		{"/queue", "waiters candidates", "provider dispatchable reason"},
	} {
		var v any
		if err := json.Unmarshal(get(t, s, c.path, http.StatusOK), &v); err != nil {
			t.Fatal(err)
		}
		found := 0
		each(v, strings.Fields(c.at), func(o map[string]any) {
			found++
			want := slices.Sorted(slices.Values(strings.Fields(c.keys)))
			if got := slices.Sorted(maps.Keys(o)); !slices.Equal(got, want) {
				t.Errorf("GET %s, at %q: keys %v, want %v", c.path, c.at, got, want)
			}
		})
		if found == 0 {
			t.Errorf("GET %s: nothing at %q", c.path, c.at)
		}
	}
}

// each calls fn with every object at the end of the path, through lists.
func each(v any, path []string, fn func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			each(x, path, fn)
		}
	case map[string]any:
		if len(path) == 0 {
			fn(v)
		} else {
			each(v[path[0]], path[1:], fn)
		}
	}
}

// TestEmptyListsAreNotNull holds for a machine that has seen nothing.
func TestEmptyListsAreNotNull(t *testing.T) {
	s := serve(t, newWorld(t), nil)
	for _, path := range []string{"/status", "/providers", "/nodes", "/models", "/leases", "/queue"} {
		if body := get(t, s, path, http.StatusOK); bytes.Contains(body, []byte("null")) {
			t.Errorf("GET %s: %s", path, body)
		}
	}
}
