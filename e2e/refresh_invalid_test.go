package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// secrets stand in the faulty files where they must not, or where they may, and must never be shown.
var secrets = []string{"sk-0123456789abcdefghijklmnop", "the-raw-admin-token", "raw-token-of-a-node", "hunter2-is-a-password"}

// faults are edits of a good file with one fault each, and the path that must be named.
var faults = map[string]struct {
	edit  string
	value any
	path  string
}{
	"unknown key at the top":     {"model_list", []any{}, "model_list"},
	"unknown key, a near one":    {"nodes[0].providers[0].capacty", 3, "nodes[0].providers[0].capacty"},
	"capacity 0":                 {"nodes[0].providers[0].capacity", 0, "nodes[0].providers[0].capacity"},
	"capacity as text":           {"nodes[0].providers[0].capacity", "four", "nodes[0].providers[0].capacity"},
	"capacity as a fraction":     {"nodes[0].providers[0].capacity", 1.5, "nodes[0].providers[0].capacity"},
	"long above capacity":        {"nodes[0].providers[0].long_context_capacity", 9, "nodes[0].providers[0].long_context_capacity"},
	"long without a window":      {"nodes[0].providers[0].long_context_capacity", 1, "nodes[0].providers[0].long_context_capacity"},
	"negative queue":             {"provider_pool.max_queue", -1, "provider_pool.max_queue"},
	"negative timeout":           {"provider_pool.queue_timeout_ms", -5, "provider_pool.queue_timeout_ms"},
	"threshold 0":                {"long_context_threshold_tokens", 0, "long_context_threshold_tokens"},
	"unknown provider":           {"models[0].providers.nobody", "served/p1", "models[0].providers.nobody"},
	"name that is not served":    {"models[0].providers.p1", "served/nowhere", "models[0].providers.p1"},
	"unknown adapter":            {"nodes[0].providers[0].adapter", "a-nothing", "nodes[0].providers[0].adapter"},
	"unknown type":               {"nodes[0].providers[0].type", "vlllm", "nodes[0].providers[0].type"},
	"two nodes of one id":        {"nodes[1]", map[string]any{"id": "n1", "token_hash_sha256": sha("x")}, "nodes[1].id"},
	"two models of one id":       {"models[1].id", "m", "models[1].id"},
	"hash that is no hash":       {"nodes[0].token_hash_sha256", "raw-token-of-a-node", "nodes[0].token_hash_sha256"},
	"raw token of a node":        {"nodes[0].token", "raw-token-of-a-node", "nodes[0].token"},
	"raw key of a backend":       {"nodes[0].adapters[0].api_key", "sk-0123456789abcdefghijklmnop", "nodes[0].adapters[0].api_key"},
	"key in the env's name":      {"nodes[0].adapters[0].api_key_env", "sk-0123456789abcdefghijklmnop", "nodes[0].adapters[0].api_key_env"},
	"password in a URL":          {"nodes[0].adapters[0].base_url", "http://user:hunter2-is-a-password@127.0.0.1/v1", "nodes[0].adapters[0].base_url"},
	"temperature out of range":   {"models[0].generation.temperature", 3, "models[0].generation.temperature"},
	"no adapter type":            {"nodes[0].adapters[0].type", absent, "nodes[0].adapters[0].type"},
	"no provider id":             {"nodes[0].providers[0].id", absent, "nodes[0].providers[0].id"},
	"environment in the cluster": {"nodes[0].alias", "${HOME}", "nodes[0].alias"},
	"admin for everybody":        {"edge.listen.admin", "0.0.0.0:9080", "edge.tls.cert"},
	"list in place of a map":     {"provider_pool", []any{1}, "provider_pool"},
}

// TestRefreshInvalid: each fault is answered 422, or by exit code 2, with its very path and a cure, several all at once;
// nothing is applied, and nothing secret is said by anybody.
func TestRefreshInvalid(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 2)
	w, side := newBusyWorld(t, l, "n1")
	revision := w.status().Revision
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		f := faults[name]
		r := w.refresh(422, "invalid", "", func(l *layout) {
			l.edits["edge.admin.token"] = "the-raw-admin-token"
			l.edits[f.edit] = f.value
		})
		wantProblem(t, name, &r, f.path)
		if len(r.ChangedPaths) != 0 || r.Revision != revision || len(r.PushedNodes) != 0 {
			t.Errorf("%s: %s", name, r.raw)
		}
		all.WriteString(r.raw)
	}
	many := func(l *layout) {
		for _, name := range []string{"capacity 0", "negative queue", "unknown provider", "threshold 0", "raw key of a backend"} {
			l.edits[faults[name].edit] = faults[name].value
		}
	}
	for _, query := range []string{"", "?dry_run=true", "?live_only=true", "?expected_revision=1"} {
		r := w.refresh(422, "invalid", query, many)
		if len(r.Problems) < 5 {
			t.Errorf("five faults give %d problems: %s", len(r.Problems), r.raw)
		}
	}
	bad := w.with(many)
	file := w.write("candidate.yaml", w.file(&bad))
	r, said := w.refreshBy(2, many)
	for _, name := range []string{"capacity 0", "negative queue", "unknown provider", "threshold 0", "raw key of a backend"} {
		wantProblem(t, name, &r, faults[name].path)
	}
	table := w.iopctl(2, "refresh", "-f", file)
	wantWords(t, "the table", table, "nodes[0].providers[0].capacity", "provider_pool.max_queue", "cure:")
	w.write("edge.yaml", w.file(&bad))
	fromDisk, said2 := w.iopctlBoth(2, "refresh", "-o", "json")
	diff, said3 := w.iopctlBoth(2, "config", "diff", "-o", "json")
	for _, s := range []string{r.raw, said, table, fromDisk, said2, diff, said3} {
		all.WriteString(s)
	}
	if got := w.status().Revision; got != revision {
		t.Errorf("revision %d after %d", got, revision)
	}
	side.end()
	for _, p := range w.all {
		all.WriteString(p.out.String())
	}
	for _, s := range secrets {
		if strings.Contains(all.String(), s) {
			t.Errorf("%s was shown", s)
		}
	}
}

func wantProblem(t *testing.T, name string, r *refreshReport, path string) {
	t.Helper()
	for _, p := range r.Problems {
		if p.Path == path && p.Cause != "" && p.Cure != "" {
			return
		}
	}
	t.Errorf("%s: no problem at %s with cause and cure: %+v", name, path, r.Problems)
}

// TestRefreshOfWhatIsNoFile: bytes that are no YAML, another method, a query that nobody knows, a page from elsewhere, a
// file that is gone: each has its own answer, and nothing is applied.
func TestRefreshOfWhatIsNoFile(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w, side := newBusyWorld(t, shared(b, 2), "n1")
	revision := w.status().Revision
	good := w.with(func(l *layout) { l.providers[0].capacity = 5 })
	for name, body := range map[string]string{
		"no YAML": "edge: [", "a word": "hello", "a list": "[1, 2]", "two documents": "edge: {id: a}\n---\nedge: {id: b}\n",
		"a key twice": "edge: {id: a}\nedge: {id: b}\n", "zeros": "\x00\x00\x00", "an empty map": "{}", "spaces": "   \n",
	} {
		code, answer := w.post("", []byte(body))
		r := parseReport(t, answer)
		if code != 422 || r.Result != "invalid" || len(r.Problems) == 0 {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
	for _, query := range []string{"?dry_run=perhaps", "?dryrun=true", "?expected_revision=-1", "?expected_revision=x"} {
		if code, answer := w.post(query, w.file(&good)); code != 400 || !json.Valid(answer) {
			t.Errorf("%s: %d %s", query, code, answer)
		}
	}
	if code, _ := w.post("", bytes.Repeat([]byte("# a large file\n"), 8<<20)); code != 413 {
		t.Errorf("a very large file: %d", code)
	}
	for name, c := range map[string]struct {
		method string
		header http.Header
		host   string
		status int
	}{
		"GET":                 {method: http.MethodGet, status: 405},
		"a page of elsewhere": {method: http.MethodPost, header: http.Header{"Origin": {"http://evil.example"}}, status: 403},
		"a form of elsewhere": {method: http.MethodPost, header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, status: 403},
		"another host's name": {method: http.MethodPost, host: "evil.example", status: 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+w.edge.admin+"/refresh", bytes.NewReader(w.file(&good)))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(r.Header, c.header)
		r.Host, r.Close = c.host, true
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	if err := os.Remove(w.path("edge.yaml")); err != nil {
		t.Fatal(err)
	}
	if code, answer := w.post("", nil); code == 200 || !bytes.Contains(answer, []byte("edge.yaml")) {
		t.Errorf("the file is gone: %d %s", code, answer)
	}
	wantWords(t, "no such file", w.iopctl(2, "refresh", "-f", w.path("nowhere.yaml")), "nowhere.yaml")
	if got := w.status(); got.Revision != revision || *w.provider("p1").Capacity != 2 {
		t.Errorf("something was applied: revision %d after %d", got.Revision, revision)
	}
	side.end()
}

// TestAdminBeyondLoopbackNeedsTokenAndTLS, else the edge does not start.
func TestAdminBeyondLoopbackNeedsTokenAndTLS(t *testing.T) {
	t.Parallel()
	l := shared(newBackend(t, backend.Options{}), 1)
	w := newEmptyWorld(t, l)
	cert := map[string]any{"cert": "cert.pem", "key": "key.pem"}
	for name, c := range map[string]struct {
		edits   map[string]any
		missing []string
	}{
		"neither":  {map[string]any{"edge.listen.admin": "0.0.0.0:0"}, []string{"edge.admin.token", "edge.tls.cert"}},
		"no TLS":   {map[string]any{"edge.listen.admin": ":0", "edge.admin.token": "${IOP_E2E_ADMIN}"}, []string{"edge.tls.cert"}},
		"no token": {map[string]any{"edge.listen.admin": "[::]:0", "edge.tls": cert}, []string{"edge.admin.token"}},
	} {
		l.edits = c.edits
		p := w.spawnEdge(w.write("edge.yaml", l.edgeFile("edge-1", w.dataDir())), "IOP_E2E_ADMIN=the-raw-admin-token")
		if code := p.code(t); code != 2 {
			t.Errorf("%s: exit code %d, want 2", name, code)
		}
		wantWords(t, name, p.out.String(), append(c.missing, "not on loopback")...)
		if p.says("the-raw-admin-token") {
			t.Errorf("%s: the token was logged", name)
		}
	}
}
