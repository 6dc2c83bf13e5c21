package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

func decodeAs[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// outcomes are those of a story, in order.
func outcomes(s *adminapi.Story) string {
	if s == nil {
		return "no story"
	}
	var list []string
	for _, l := range s.Lines {
		list = append(list, l.Outcome)
	}
	return strings.Join(list, " ")
}

// TestHistoryLiveKilledAndCopied: the story of a lease and of a waiter is the same when the running edge tells it, when
// its directory is named while it runs, when it was killed, and from a copy; and each can be asked how things were
// before. Nothing of that holds the edge up or changes a file.
func TestHistoryLiveKilledAndCopied(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.throttled = true
	w := newWorld(t, l)
	w.awaitLink("n1")
	w.start(ask{tag: "holder"})
	held := w.awaitLeases(1)[0]
	then := w.status().AppliedIndex
	w.queue(ask{tag: "waiter", model: "ornith-fast"}, 1)
	waiting := w.waiters()[0]
	lease := fmt.Sprint(held.ID)

	r := decodeAs[adminapi.Request](t, w.iopctl(0, "requests", "explain", waiting.Request, "-o", "json"))
	if x := r.Explanation; x == nil || len(x.Candidates) != 1 || x.Candidates[0].Reason != "full" || fmt.Sprint(x.Candidates[0].Holders) != "["+lease+"]" || outcomes(r.Story) != "queued" {
		t.Fatalf("%+v %+v", r.Explanation, r.Story)
	}
	wantWords(t, "requests explain", w.iopctl(0, "requests", "explain", waiting.Request), "number 1 in the queue", "1 of 1 slots in use by lease "+lease, "one of its slots has to come back")

	b.LetAll()
	w.awaitIdle()
	story := func(args ...string) (string, string) {
		out, errs := w.iopctlBoth(0, append(append([]string{"leases", "inspect", lease, "-o", "json"}, args...), "--timeout", "20s")...)
		d := decodeAs[adminapi.LeaseDetail](t, out)
		if d.State != "returned" || d.Request != held.Request || d.Provider != held.Provider || d.Generation != held.Generation {
			t.Errorf("%v: %s", args, out)
		}
		text, _ := json.Marshal(d.Story.Lines)
		if got := outcomes(d.Story); got != "granted returned" {
			t.Errorf("%v: %s", args, got)
		}
		return string(text), errs
	}
	live, _ := story()
	inUse, errs := story("--data-dir", w.dataDir())
	wantWords(t, "--data-dir of a running edge", errs, "is in use: edge edge-1 is asked instead")
	went := decodeAs[adminapi.Request](t, w.iopctl(0, "requests", "explain", waiting.Request, "-o", "json"))
	if went.State != "ended" || outcomes(went.Story) != "queued granted returned" {
		t.Errorf("%s: %+v", outcomes(went.Story), went)
	}
	wasHeld(t, w, then, held.Request)
	out, errs := w.iopctlBoth(0, "debug", "check", "--data-dir", w.dataDir())
	wantWords(t, "debug check of a running edge", errs, "a copy of it is read")
	wantWords(t, "debug check of a running edge", out, "invariants hold in all")

	w.edge.kill()
	dead, _ := story("--data-dir", w.dataDir())
	copied := w.path("copied")
	if err := os.CopyFS(copied, os.DirFS(w.dataDir())); err != nil {
		t.Fatal(err)
	}
	elsewhere, _ := story("--data-dir", copied)
	if live != inUse || live != dead || live != elsewhere {
		t.Errorf("the stories differ:\n%s\n%s\n%s\n%s", live, inUse, dead, elsewhere)
	}
	wasHeld(t, w, then, held.Request, "--data-dir", copied)
	wantWords(t, "debug diff", w.iopctl(0, "debug", "diff", "--data-dir", copied, "--from", fmt.Sprint(then)),
		"request "+held.Request+" ended; it was held: lease "+lease, "2 returned in between")
	log := w.iopctl(0, "debug", "log", "--data-dir", copied, "--lease", lease, "--outcomes")
	if n := strings.Count(log, "\n"); n != 2 || !strings.Contains(log, `"kind":"release"`) || !strings.Contains(log, held.Request) {
		t.Errorf("%d lines:\n%s", n, log)
	}
	wantWords(t, "debug check", w.iopctl(0, "debug", "check", "--data-dir", copied), "invariants hold in all")
	w.restartEdge()
	w.awaitLink("n1")
	again, _ := story()
	if again != live {
		t.Errorf("after the restart the story is another:\n%s\n%s", live, again)
	}
	w.want(200, ask{tag: "after"})
	w.awaitIdle()
}

// wasHeld wants that at an index only the one request held a lease and nobody waited.
func wasHeld(t *testing.T, w *world, index uint64, request string, args ...string) {
	t.Helper()
	at := append([]string{"--at", fmt.Sprint(index), "-o", "json"}, args...)
	leases := decodeAs[adminapi.LeaseList](t, w.iopctl(0, append([]string{"leases", "list"}, at...)...)).Leases
	waiters := decodeAs[adminapi.WaiterList](t, w.iopctl(0, append([]string{"queue", "list"}, at...)...)).Waiters
	if len(leases) != 1 || leases[0].Request != request || len(waiters) != 0 {
		t.Errorf("at index %d, asked with %v: %+v, %+v", index, args, leases, waiters)
	}
}

// TestHistoryWhileTheEdgeWorks: with requests coming all the time, stories are told and copies taken beside them; the
// requests are served as if nothing happened.
func TestHistoryWhileTheEdgeWorks(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 4))
	w.awaitLink("n1")
	first := w.want(200, ask{tag: "first", key: "first"})
	if first.status != 200 {
		t.FailNow()
	}
	var lists []string
	for i := range 5 {
		var running []*flight
		for k := range 4 {
			running = append(running, w.start(ask{tag: fmt.Sprintf("busy-%d-%d", i, k)}))
		}
		d := decodeAs[adminapi.LeaseDetail](t, w.iopctl(0, "leases", "inspect", "1", "-o", "json", "--timeout", "20s"))
		lists = append(lists, outcomes(d.Story))
		wantWords(t, "debug log of a running edge", w.iopctl(0, "debug", "log", "--data-dir", w.dataDir(), "--lease", "1"), `"kind":"release"`)
		for _, f := range running {
			if a := f.wait(t); a.status != 200 || !a.clean {
				t.Errorf("%s: %d", a.tag, a.status)
			}
		}
	}
	for _, got := range lists {
		if got != "granted returned" {
			t.Errorf("lease 1: %s", got)
		}
	}
	w.awaitIdle()
}
