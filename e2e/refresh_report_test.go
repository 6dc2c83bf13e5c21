package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"iop/edged/adminapi"
)

// refreshReport is the answer to a refresh, and its bytes.
type refreshReport struct {
	adminapi.RefreshReport
	t   testing.TB
	raw string
}

// reportLists are the lists of a report. They are never null, and sorted.
var reportLists = []string{
	"changed_nodes", "changed_providers", "changed_models", "changed_paths", "restart_required_paths",
	"providers_over_capacity", "pushed_nodes", "pending_nodes", "waiters", "problems", "warnings",
}

// parseReport reads a report and checks its shape.
func parseReport(t testing.TB, body []byte) refreshReport {
	t.Helper()
	r := refreshReport{t: t, raw: string(body)}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil { // iopctl indents
		body = compact.Bytes()
	}
	if err := json.Unmarshal(body, &r.RefreshReport); err != nil {
		t.Fatalf("read the report: %v: %s", err, body)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	for _, k := range append([]string{"result", "revision", "waiters_affected"}, reportLists...) {
		if v, ok := all[k]; !ok || string(v) == "null" {
			t.Errorf("the report lacks %s: %s", k, body)
		}
	}
	paths := []string{}
	for _, p := range r.ChangedPaths {
		paths = append(paths, p.Path)
	}
	for name, list := range map[string][]string{
		"changed_nodes": r.ChangedNodes, "changed_providers": r.ChangedProviders, "changed_models": r.ChangedModels,
		"restart_required_paths": r.RestartRequiredPaths, "pushed_nodes": r.PushedNodes, "pending_nodes": r.PendingNodes,
		"changed_paths": paths,
	} {
		if !slices.IsSorted(list) {
			t.Errorf("%s is not sorted: %q", name, list)
		}
	}
	return r
}

// post sends POST /refresh with a body ("" = the file on disk is read again) and returns status and answer.
func (w *world) post(query string, body []byte) (int, []byte) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.edge.admin+"/refresh"+query, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatalf("POST /refresh: %v", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("POST /refresh: %v", err)
	}
	return res.StatusCode, answer
}

// with is the world's layout with a change; the world keeps its own.
func (w *world) with(change func(*layout)) layout {
	l := w.layout.clone()
	change(&l)
	return l
}

func (w *world) file(l *layout) []byte { return l.edgeFile("edge-1", w.dataDir()) }

// refresh offers a changed layout and wants a status and a result.
func (w *world) refresh(status int, result, query string, change func(*layout)) refreshReport {
	w.t.Helper()
	l := w.with(change)
	got, body := w.post(query, w.file(&l))
	r := parseReport(w.t, body)
	if got != status || r.Result != result {
		w.t.Fatalf("POST /refresh%s: status %d, result %q, want %d, %q: %s", query, got, r.Result, status, result, body)
	}
	return r
}

// apply makes a changed layout the configuration; it is the world's layout from then on.
func (w *world) apply(change func(*layout)) refreshReport {
	w.t.Helper()
	before := w.status().Revision
	r := w.refresh(200, "applied", "", change)
	w.layout = w.with(change)
	if r.Revision != before+1 || w.status().Revision != r.Revision {
		w.t.Errorf("revision %d became %d by a refresh that says %d", before, w.status().Revision, r.Revision)
	}
	return r
}

// refreshBy is a refresh by iopctl from a file; it wants an exit code and returns the report and what stderr said.
func (w *world) refreshBy(code int, change func(*layout), args ...string) (refreshReport, string) {
	w.t.Helper()
	l := w.with(change)
	file := w.write("candidate.yaml", w.file(&l))
	out, errs := w.iopctlBoth(code, append([]string{"refresh", "-f", file, "-o", "json"}, args...)...)
	return parseReport(w.t, []byte(out)), errs
}

// wantPath wants a changed path with its class and values.
func (r *refreshReport) wantPath(path, class string, before, after any) {
	r.t.Helper()
	i := slices.IndexFunc(r.ChangedPaths, func(p adminapi.ChangedPath) bool { return p.Path == path })
	if i < 0 {
		r.t.Errorf("the report has no path %s: %s", path, r.raw)
		return
	}
	p := r.ChangedPaths[i]
	if p.Class != class || !sameValue(p.Old, before) || !sameValue(p.New, after) {
		r.t.Errorf("path %+v, want %s, %v → %v", p, class, before, after)
	}
}

// wantTouched wants exactly these providers and models as changed.
func (r *refreshReport) wantTouched(providers, models string) {
	r.t.Helper()
	if p, m := strings.Join(r.ChangedProviders, " "), strings.Join(r.ChangedModels, " "); p != providers || m != models {
		r.t.Errorf("changed providers %q, models %q, want %q, %q", p, m, providers, models)
	}
}

// wantOver wants exactly these providers above their new capacity, as in "p1 4/1 0/-": in flight and capacity, and the
// same of long slots.
func (r *refreshReport) wantOver(want ...string) {
	r.t.Helper()
	got := []string{}
	slots := func(n *int) string {
		if n == nil {
			return "-"
		}
		return strconv.Itoa(*n)
	}
	for _, o := range r.ProvidersOverCapacity {
		got = append(got, fmt.Sprintf("%s %d/%s %d/%s", o.Provider, o.InFlight, slots(o.Capacity), o.LongInFlight, slots(o.LongCapacity)))
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("over capacity: %q, want %q", got, want)
	}
}

// sameValue compares JSON with a value.
func sameValue(is json.RawMessage, want any) bool {
	b, err := json.Marshal(want)
	return err == nil && string(is) == string(b)
}
