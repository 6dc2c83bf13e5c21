package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"iop/cli"
)

// goldens are what is run of each command: in all formats, or, where a line says so itself, as it is. DIR is the directory of a
// stopped replica, TMP one for files.
func goldens() map[string][]string {
	return map[string][]string{
		"status":            {"status"},
		"leases list":       {"leases list", "leases list --data-dir DIR"},
		"leases inspect":    {"leases inspect 1"},
		"leases watch":      {"leases watch --for 1m -o table", "leases watch --for 1m -o json"},
		"queue list":        {"queue list"},
		"queue cancel":      {"queue cancel r-4"},
		"queue watch":       {"queue watch --for 1m -o table", "queue watch --for 1m -o json"},
		"requests list":     {"requests list", "requests list --data-dir DIR -o table"},
		"requests explain":  {"requests explain r-4", "requests explain", "requests explain --data-dir DIR -o table"},
		"usage":             {"usage", "usage -o csv"},
		"providers list":    {"providers list"},
		"providers show":    {"providers show mac"},
		"providers drain":   {"providers drain mac"},
		"providers undrain": {"providers undrain mac"},
		"nodes list":        {"nodes list"},
		"nodes show":        {"nodes show studio", "nodes show tower -o table"},
		"nodes add":         {"nodes add gpu-3 --dry-run", "nodes add gpu-3 -o table"},
		"nodes token":       {"nodes token studio"},
		"nodes drain":       {"nodes drain studio"},
		"nodes undrain":     {"nodes undrain studio"},
		"models list":       {"models list"},
		"models show":       {"models show both"},
		"refresh":           {"refresh --dry-run"},
		"config validate":   {"config validate TMP/edge.yaml"},
		"config show":       {"config show", "config show --revision 6"},
		"config diff":       {"config diff"},
		"config history":    {"config history", "config history 7"},
		"config schema":     {"config schema --kind node -o table"},
		"tokens new":        {"tokens new"},
		"tokens hash":       {"tokens hash secret"},
		"certs init":        {"certs init --dir TMP/pki1 -o table", "certs init --dir TMP/pki2 -o json", "certs init --dir TMP/pki3 -o yaml"},
		"certs edge":        {"certs edge edge-1 --host gw1.lan --dir TMP/pki -o table", "certs edge edge-2 --host gw2.lan --dir TMP/pki -o json"},
		"certs node":        {"certs node gpu --dir TMP/pki -o table", "certs node gpu-2 --dir TMP/pki -o json"},
		"certs show":        {"certs show --dir TMP/pki"},
		"cluster members":   {"cluster members"},
		"cluster add":       {"cluster add edge-2 gw2:7400"},
		"cluster remove":    {"cluster remove edge-9"},
		"cluster replace":   {"cluster replace edge-9 edge-1 gw1:7400"},
		"cluster transfer":  {"cluster transfer edge-1"},
		"cluster verify":    {"cluster verify"},
		"cluster backup":    {"cluster backup --data-dir DIR -o TMP/iop.backup"},
		"cluster restore":   {"cluster restore TMP/iop.backup --data-dir TMP/r1 --replica edge-7 -o table", "cluster restore TMP/iop.backup --data-dir TMP/r2 --replica edge-7 -o json"},
		"cluster recover":   {"cluster recover --data-dir TMP/r3 -o table", "cluster recover --data-dir TMP/r4 -o json"},
		"debug bundle":      {"debug bundle --data-dir DIR -o TMP/b.tar.gz"},
		"debug check":       {"debug check --data-dir DIR"},
		"debug diff":        {"debug diff --data-dir DIR --from 3"},
		"debug log":         {"debug log --data-dir DIR --limit 2 -o json"},
		"debug story":       {"debug story --data-dir DIR --node n1"},
		"version":           {"version"},
		"dev":               {"dev --port 0 -o table"},
	}
}

// elsewhere are commands that have their goldens in tests of their own.
func elsewhere() []string { return []string{"top"} }

// TestGoldens runs every command in every format and holds it to testdata/golden; what is JSON also to its documented shape. A
// command that is not in the list fails it.
func TestGoldens(t *testing.T) {
	dir, tmp := stopped(t), t.TempDir()
	edgeFile(t, filepath.Join(tmp, "edge.yaml"))
	made(t, "certs", "init", "--dir", filepath.Join(tmp, "pki"))
	made(t, "cluster", "backup", "--data-dir", dir, "-o", filepath.Join(tmp, "first.backup"))
	for _, r := range []string{"r3", "r4"} {
		made(t, "cluster", "restore", filepath.Join(tmp, "first.backup"), "--data-dir", filepath.Join(tmp, r), "--replica", "edge-1")
	}
	edge := goldenEdge(t)
	all := goldens()
	for _, path := range cli.Leaves() {
		lines := all[path]
		if len(lines) == 0 && !slices.Contains(elsewhere(), path) {
			t.Errorf("iopctl %s has no golden output: name it in goldens()", path)
		}
		if len(lines) == 0 {
			continue
		}
		var b strings.Builder
		for _, line := range lines {
			b.WriteString(goldenRun(t, path, line, edge, strings.NewReplacer("DIR", dir, "TMP", tmp)))
		}
		compareGolden(t, filepath.Join("testdata", "golden", strings.ReplaceAll(path, " ", "-")+".golden"), b.String())
	}
}

// goldenRun runs a line in all formats, or in the one that it names.
func goldenRun(t *testing.T, path, line, edge string, paths *strings.Replacer) string {
	t.Helper()
	runs := []string{line}
	if !strings.Contains(line, " -o ") {
		runs = []string{line, line + " -o wide", line + " -o json", line + " -o yaml"}
	}
	var b strings.Builder
	for _, r := range runs {
		var errs bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		out := &linesThen{n: map[string]int{"leases watch": 3, "queue watch": 2}[path], then: cancel}
		d := cli.Deps{Version: "v1.2.3", Dev: dev, Env: func(name string) (string, bool) {
			if name == "IOP_EDGE" {
				return edge, true
			}
			return "", false
		}}
		args := strings.Fields(paths.Replace(r))
		if strings.Contains(r, "debug bundle") { // of the directory only
			d.Env = nil
		}
		code := cli.Run(ctx, d, args, strings.NewReader(""), out, &errs)
		cancel()
		fmt.Fprintf(&b, "$ iopctl %s\n%s%s", r, narrow(r, settled(out.String(), edge, paths)), settled(errs.String(), edge, paths))
		if code != 0 {
			fmt.Fprintf(&b, "exit %d\n", code)
		}
		b.WriteString("\n")
		if strings.HasSuffix(r, "-o json") && code == 0 {
			shape := cli.Shape(path)
			if line == "requests explain" {
				shape = cli.Shape(path + " (without a request)")
			}
			if line == "config history 7" {
				shape = cli.Shape("config history (with a revision)")
			}
			for part := range strings.SplitSeq(oneByLine(r, out.String()), "\x00") {
				holdShape(t, r, part, shape)
			}
		}
	}
	return b.String()
}

// linesThen keeps what is written, and calls a function after some lines; 0 = never.
type linesThen struct {
	bytes.Buffer
	n    int
	then func()
}

func (l *linesThen) Write(p []byte) (int, error) {
	n, err := l.Buffer.Write(p)
	if bytes.Count(l.Bytes(), []byte("\n")) == l.n {
		l.then()
	}
	return n, err
}

// oneByLine parts JSON lines.
func oneByLine(line, out string) string {
	if strings.Contains(line, " watch ") || strings.Contains(line, "debug log") {
		return strings.ReplaceAll(strings.TrimSpace(out), "\n", "\x00")
	}
	return out
}

// settled replaces what differs from run to run.
func settled(s, edge string, paths *strings.Replacer) string {
	s = strings.ReplaceAll(s, edge, "EDGE")
	for _, name := range []string{"DIR", "TMP"} {
		s = strings.ReplaceAll(s, paths.Replace(name), name)
	}
	for _, r := range []struct{ what, by string }{
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`, "TIME"},
		{`\b\d\d:\d\d:\d\d\.\d{3}\b`, "TIME"},
		{`\b20\d\d-\d\d-\d\d\b`, "DAY"},
		{`\b[0-9a-f]{32,64}\b`, "HEX"},
		{`\b[0-9a-f]{16}\b`, "HEX"},
		{`iop_[A-Za-z0-9_-]{43}`, "TOKEN"},
		{`go1\.\d+(\.\d+)?`, "GO"},
		{`\b(linux|darwin|windows)\b`, "OS"},
		{`\b(amd64|arm64)\b`, "ARCH"},
		{`("?took_ms"?: )\d+`, "${1}N"},
		{`("?days_left"?: )\d+`, "${1}N"},
		{`(Took +)\S+`, "${1}SPAN"},
		{`("?age_ms"?: ?)\d+(,?)`, "${1}N${2}"},
		{`("(?:cluster_ms|seq|term)":)\d+`, "${1}N"},
		{`\d+ (days|bytes)`, "N $1"},
		{`\d+(\.\d+)? [KM]?i?B\b`, "SIZE"},
		{`.iop-bundle[^ ]*`, "BUNDLE"},
		{`[^\n "]*edge-1\.[^\n "]*`, "KEPT"},
	} {
		s = regexp.MustCompile(r.what).ReplaceAllString(s, r.by)
	}
	return s
}

// narrow takes ages out, and what aligns: those of a directory are as long as they are.
func narrow(line, s string) string {
	if !strings.Contains(line, "DIR") && !strings.Contains(line, "TMP") || strings.Contains(line, "-o json") || strings.Contains(line, "-o yaml") {
		return s
	}
	s = regexp.MustCompile(`\b\d+(\.\d)?m?s\b`).ReplaceAllString(s, "SPAN")
	return regexp.MustCompile(`([^ \n]) +`).ReplaceAllString(regexp.MustCompile(`(?m)^ +`).ReplaceAllString(s, " "), "$1 ")
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%v (-update writes it)", err)
		return
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -update rewrites it):\n%s", file, diff)
	}
}

// holdShape wants a JSON text to have all documented keys and no others, and no list that is null.
func holdShape(t *testing.T, line, text string, shape any) {
	t.Helper()
	if shape == nil {
		t.Errorf("iopctl %s prints JSON that is not documented", line)
		return
	}
	v := reflect.New(reflect.TypeOf(shape).Elem())
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v.Interface()); err != nil {
		t.Errorf("iopctl %s: %v in\n%s", line, err, text)
		return
	}
	again, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("iopctl %s (-documented +printed):\n%s", line, diff)
	}
	noNullLists(t, line, v.Elem())
}

// noNullLists walks a decoded value.
func noNullLists(t *testing.T, line string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			noNullLists(t, line, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			noNullLists(t, line, v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if v.Field(i).Kind() == reflect.Slice && v.Field(i).IsNil() && f.Type != reflect.TypeFor[json.RawMessage]() &&
				!strings.Contains(f.Tag.Get("json"), "omitempty") {
				t.Errorf("iopctl %s: %s is null: lists never are", line, f.Name)
			}
			noNullLists(t, line, v.Field(i))
		}
	}
}

// goldenEdge answers all that iopctl asks with what the tests of edged/admin hold the real handler to, or as it would.
func goldenEdge(t *testing.T) string {
	t.Helper()
	files := map[string]string{
		"/status": "status", "/providers": "providers", "/nodes": "nodes", "/models": "models", "/leases": "leases", "/queue": "queue",
		"/leases/1": "lease", "/providers/mac": "provider", "/requests/r-4": "request_waiting",
		"/cluster": "cluster", "/cluster/members": "cluster", "/cluster/members/edge-9": "cluster", "/cluster/transfer": "cluster", "/cluster/verify": "verification",
	}
	const empty = `"changed_nodes":[],"changed_providers":["mac"],"changed_models":[],"restart_required_paths":[],"waiters_affected":0,"waiters":[],` +
		`"providers_over_capacity":[],"pushed_nodes":["studio"],"pending_nodes":[],"problems":[],"warnings":[{"path":"edge.queue","line":3,"text":"it is small"}]`
	report := func(result, file string) string {
		return `{"result":"` + result + `","dry_run":true,"live_only":false,"file":"` + file + `","revision":7,` + empty +
			`,"changed_paths":[{"path":"nodes[studio].providers[mac].capacity","old":2,"new":4,"class":"live"}]}`
	}
	frame := `{"whole":true,"seq":1,"at_ms":1767225600000,"edge":"edge-1","version":"v1","role":"leader","leader":"edge-1","term":3,"applied_index":9,"lag":0,` +
		`"revision":1,"actions":"allowed","queue":{"pending":1,"max":16,"long_pending":0},` +
		`"leases":[{"id":1,"request":"r-1","model":"m","provider":"mac","node":"studio","class":"long","state":"held","edge":"edge-1","generation":1,"granted_at_ms":1767225596000}],` +
		`"waiters":[{"request":"r-4","model":"m","class":"normal","state":"waiting","edge":"edge-1","principal":"","place":4,"enqueued_at_ms":1767225598000,"deadline_at_ms":0,"waits_for":"mac is full"}]}`
	change := `{"whole":false,"seq":2,"at_ms":1767225601000,"edge":"edge-1","version":"v1","role":"leader","leader":"edge-1","term":3,"applied_index":11,"lag":0,` +
		`"revision":1,"actions":"allowed","queue":{"pending":0,"max":16,"long_pending":0},"leases_gone":[1],"waiters_gone":["r-4"],` +
		`"leases":[{"id":2,"request":"r-4","model":"m","provider":"mac","node":"studio","class":"normal","state":"held","edge":"edge-1","generation":1,"granted_at_ms":1767225601000}]}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := ""
		switch {
		case r.URL.Path == "/live":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "event: whole\ndata: %s\n\nevent: change\ndata: %s\n\n", frame, change)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		case r.URL.Path == "/drain":
			answer = string(body)
		case strings.HasSuffix(r.URL.Path, "/cancel"):
			answer = `{"request":"r-4"}`
		case r.URL.Path == "/refresh":
			answer = report("dry_run", "/etc/iop/edge.yaml")
		case r.URL.Path == "/nodes" && r.Method == http.MethodPost:
			answer = report(map[string]string{"true": "dry_run", "false": "applied"}[r.URL.Query().Get("dry_run")], "")
		case strings.HasSuffix(r.URL.Path, "/join"):
			answer = `{"node":"studio","ttl_ms":3600000,"url":"http://gw1:8080","install_sh_sha256":"","install_ps1_sha256":"","plaintext":true,"builds":[],"problem":"edge.bootstrap.artifact_dir is not set"}`
		case r.URL.Path == "/config/history/6":
			answer = `{"revision":6,"document":{"models":[]}}`
		case r.URL.Path == "/config":
			answer = `{"revision":7,"document":{"models":[{"id":"m"}]}}`
		case r.URL.Path == "/config/history":
			answer = `{"revisions":[{"revision":7,"index":9,"time":"2026-01-31T15:04:05Z","edge":"edge-1","source":"refresh",` +
				`"changes":[{"path":"nodes[studio].providers[mac].capacity","old":2,"new":4,"class":"live"}]}]}`
		case r.URL.Path == "/usage":
			answer = `{"by":["day","principal","token","model","provider"],"from":"","to":"","rows":[{"day":"2026-01-31","principal":"ann","token":"laptop","model":"m","provider":"mac",` +
				`"requests":3,"aborted":1,"untold":0,"prompt_tokens":100,"completion_tokens":50,"cached_tokens":10,"reasoning_tokens":0}]}`
		case files[r.URL.Path] != "":
			answer = read(t, files[r.URL.Path])
		default:
			t.Errorf("nobody answers %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return strings.TrimPrefix(s.URL, "http://")
}

func edgeFile(t *testing.T, file string) {
	t.Helper()
	text := "edge: { id: e, data_dir: d, listen: { openai: \"127.0.0.1:0\", node: \"127.0.0.1:0\", admin: \"127.0.0.1:0\" } }\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
