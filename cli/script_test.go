package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"iop/cli"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"iopctl": func() {
			d := cli.Deps{Env: os.LookupEnv, Version: "v1.2.3", Dev: dev}
			os.Exit(cli.Run(context.Background(), d, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// dev tells what it was called with.
func dev(_ context.Context, o cli.DevOptions) error {
	if o.Port == 13 {
		return errors.New("port 13 is taken")
	}
	_, err := fmt.Fprintf(o.Stdout, "dir=%q port=%d admin=%d detect=%v level=%s\n", o.DataDir, o.Port, o.AdminPort, o.Detect, o.LogLevel)
	return err
}

// TestScripts runs testdata/*.txtar: what is typed, what is shown. The edge at IOP_EDGE answers with the files that the
// tests of edged/admin hold the real handler to; the one at IDLE has nothing; nobody listens at NOBODY.
func TestScripts(t *testing.T) {
	answers := map[string]string{
		"/status": "status", "/providers": "providers", "/nodes": "nodes", "/models": "models", "/leases": "leases",
		"/queue": "queue", "/leases/1": "lease", "/leases/r-1": "lease",
		"/providers/mac": "provider",
		"/cluster":       "cluster", "/cluster/members": "cluster", "/cluster/members/edge-3": "cluster", "/cluster/transfer": "cluster",
		"/cluster/verify": "verification",
	}
	busy := serve(t, func(path string) (int, string) {
		if name, ok := answers[path]; ok {
			return 200, read(t, name)
		}
		return 404, `{"error":{"code":"not_found","message":"no lease or request \"9\u001b[2J\"","cure":"list them"}}`
	})
	split := serve(t, func(path string) (int, string) {
		if path == "/cluster/verify" {
			return 200, `{"index":12,"same":false,"replicas":[{"id":"a","digest":"aa"},{"id":"b","digest":"bb"},{"id":"c","digest":"aa"}]}`
		}
		return 503, `{"error":{"code":"no_leader","message":"there is no leader that could take the change","cure":"try again"}}`
	})
	idle := serve(t, func(path string) (int, string) { return 200, idleAnswers[path] })
	locked := serve(t, func(string) (int, string) {
		return 401, `{"error":{"code":"unauthorized","message":"the admin token is missing or wrong","cure":"--token or IOP_TOKEN"}}`
	})
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "IOP_EDGE="+busy, "IDLE="+idle, "LOCKED="+locked, "SPLIT="+split, "NOBODY="+closedPort(t))
			return nil
		},
	})
}

var idleAnswers = map[string]string{
	"/status": `{"edge":"edge-1","role":"follower","leader":"","term":4,"applied_index":1,"revision":0,` +
		`"queue":{"pending":0,"max":16,"long_pending":0},"providers":[],"links":[]}`,
	"/providers": `{"providers":[]}`,
	"/nodes":     `{"nodes":[]}`,
	"/models":    `{"models":[]}`,
	"/leases":    `{"leases":[]}`,
	"/queue":     `{"pending":0,"waiters":[]}`,
}

func serve(t *testing.T, answer func(path string) (int, string)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answer(r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func read(t *testing.T, name string) string {
	data, err := os.ReadFile(filepath.Join("..", "edged", "admin", "testdata", name+".json"))
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func serveQuery(t *testing.T, answer func(path, query string) string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answer(r.URL.Path, r.URL.RawQuery))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}
