package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"iop/cli"
	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// steady replaces what differs from run to run.
func steady(s, dir string) string {
	s = regexp.MustCompile(` +`).ReplaceAllString(strings.ReplaceAll(s, dir, "DIR"), " ")
	for _, r := range []struct{ what, by string }{
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`, "TIME"},
		{`[0-9a-f]{64}`, "DIGEST"},
		{`cluster [0-9a-f]{32}`, "cluster CLUSTER"},
		{`\b\d+(\.\d)?m?s\b`, "SPAN"},
		{`"(cluster_ms|seq|term)":\d+`, `"$1":N`},
		{`process \d+`, "process N"},
	} {
		s = regexp.MustCompile(r.what).ReplaceAllString(s, r.by)
	}
	return s
}

// TestPastOfAStoppedReplica holds what the history commands show of a stopped replica to testdata/past.golden.
func TestPastOfAStoppedReplica(t *testing.T) {
	dir := stopped(t)
	var b strings.Builder
	for _, line := range []string{
		"requests explain r-2 --data-dir DIR",
		"requests explain r-1 --data-dir DIR",
		"requests explain r-9 --data-dir DIR",
		"leases inspect 1 --data-dir DIR",
		"leases inspect r-2 --data-dir DIR",
		"leases list --data-dir DIR --at 6",
		"leases list --data-dir DIR --at 3",
		"leases list --data-dir DIR --at 99",
		"leases list --data-dir DIR --at-time yesterday",
		"leases list --data-dir DIR --at-time 2001-01-01T00:00:00Z",
		"queue list --data-dir DIR",
		"queue list --data-dir DIR --at 6",
		"debug log --data-dir DIR --kind admit",
		"debug log --data-dir DIR --request r-2 --outcomes",
		"debug log --data-dir DIR --lease 1 --outcomes",
		"debug log --data-dir DIR --kind nonsense",
		"debug log --data-dir DIR --limit 1",
		"debug diff --data-dir DIR --from 3",
		"debug diff --data-dir DIR --from 6 --to 6",
		"debug diff --data-dir DIR --from 7 --to 6",
		"debug story --data-dir DIR --node n1",
		"debug story --data-dir DIR --provider p1",
		"debug story --data-dir DIR",
		"debug check --data-dir DIR",
	} {
		code, out, errs := run(t, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		b.WriteString("$ iopctl " + line + "\n" + steady(out+errs, dir))
		if code != 0 {
			b.WriteString("exit " + string(rune('0'+code)) + "\n")
		}
		b.WriteByte('\n')
	}
	file := filepath.Join("testdata", "past.golden")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("not as in %s (-update rewrites it):\n%s", file, b.String())
	}
}

// The directory of a running replica: what needs the files reads a copy, what its edge knows is asked of its edge, and
// if that is another one, the way out is told. The replica goes on.
func TestPastOfARunningReplica(t *testing.T) {
	dir := stopped(t)
	s, err := storage.Open(t.Context(), storage.Options{Dir: dir, Replica: "edge-1", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	code, out, errs := run(t, "debug", "check", "--data-dir", dir)
	if code != 0 || !strings.Contains(out, "invariants hold") || !strings.Contains(errs, "is in use: a copy of it is read") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	asked := ""
	edge := serve(t, func(path string) (int, string) {
		if path == "/status" {
			return 200, strings.ReplaceAll(read(t, "status"), `"edge-7"`, `"edge-1"`)
		}
		asked = path
		return 200, read(t, "lease")
	})
	code, out, errs = run(t, "leases", "inspect", "1", "--data-dir", dir, "--edge", edge)
	if code != 0 || asked != "/leases/1" || !strings.Contains(errs, "edge edge-1 is asked instead") || !strings.Contains(out, "r-1") {
		t.Errorf("code %d, asked %q: %s%s", code, asked, out, errs)
	}
	code, _, errs = run(t, "leases", "inspect", "1", "--data-dir", dir, "--edge", closedPort(t))
	if code != cli.ExitFailure || !strings.Contains(errs, "in use") || !strings.Contains(errs, "cure: ask the running edge edge-1") {
		t.Errorf("code %d: %s", code, errs)
	}
	if o, err := s.Do(t.Context(), &fsm.Drain{Provider: "p1", On: true}); err != nil || o.Code != fsm.Done {
		t.Errorf("%v %v", o, err)
	}
}

// Files that are damaged are refused with their name and the way out, whichever command reads them.
func TestPastOfADamagedReplica(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"cut":    func(b []byte) []byte { return b[:12288] },
		"zeroed": func(b []byte) []byte { return append(b[:8192], make([]byte, len(b)-8192)...) },
		"other":  func([]byte) []byte { return []byte("something else altogether") },
		"empty":  func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := stopped(t)
			path := filepath.Join(dir, "log.db")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"leases", "list"},
				{"leases", "inspect", "1"},
				{"queue", "list"},
				{"requests", "explain", "r-1"},
				{"debug", "log"},
				{"debug", "check"},
				{"debug", "diff", "--from", "1"},
			} {
				code, out, errs := run(t, append(args, "--data-dir", dir)...)
				if code != cli.ExitFailure || out != "" || !strings.Contains(errs, "log.db") || !strings.Contains(errs, "restore the directory from a backup") {
					t.Errorf("%v: code %d: %s%s", args, code, out, errs)
				}
			}
		})
	}
}

// A moment is asked of the edge as the flags say it.
func TestLookingBackLive(t *testing.T) {
	query := make(chan string, 8)
	edge := serveQuery(t, func(path, raw string) string {
		query <- path + "?" + raw
		return read(t, strings.Trim(path, "/"))
	})
	for _, c := range []struct{ args, want string }{
		{"leases list --at 7", "/leases?at=7"},
		{"queue list --at-time 2026-01-31T15:04:05Z", "/queue?at_time=2026-01-31T15%3A04%3A05Z"},
		{"leases list", "/leases?"},
	} {
		code, _, errs := run(t, append(strings.Fields(c.args), "--edge", edge)...)
		if got := <-query; code != 0 || got != c.want {
			t.Errorf("%s: %s, code %d %s", c.args, got, code, errs)
		}
	}
}

func TestExplainJSON(t *testing.T) {
	dir := stopped(t)
	_, out, _ := run(t, "requests", "explain", "r-2", "--data-dir", dir, "-o", "json")
	var r adminapi.Request
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if got, want := keys(t, out), keys(t, read(t, "request_waiting")); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("keys offline %v, of the edge %v", got, want)
	}
	if r.State != "detached" && r.State != "waiting" || len(r.Explanation.Candidates) != 1 || len(r.Story.Lines) == 0 || r.Story.Lines[0].Time.After(time.Now()) {
		t.Errorf("%s", out)
	}
}
