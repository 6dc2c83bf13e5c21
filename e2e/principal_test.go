package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// withPrincipals is the openai part of a file: team-a and team-b with a token each, and what holds for them.
func withPrincipals(limits ...map[string]any) map[string]any {
	var tokens []any
	for _, ref := range []string{"a", "b"} {
		tokens = append(tokens, map[string]any{"token_ref": "app-" + ref, "token_hash_sha256": sha("key-" + ref), "principal_ref": "team-" + ref})
	}
	part := map[string]any{"principal_tokens": tokens}
	if len(limits) > 0 {
		part["principals"] = limits
	}
	return map[string]any{"openai": part}
}

// TestPrincipalLimits: a principal has as many slots and places as the catalog says, whatever is free; what it may not use it
// does not see. The limits change while requests wait.
func TestPrincipalLimits(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 4)
	limit := map[string]any{"ref": "team-a", "models": []any{"m"}, "max_in_flight": 1, "max_queued": 1}
	l.cluster = withPrincipals(limit)
	w := newWorld(t, l)
	list := func(key string) string {
		return string(fetchAs(t, w.edge.openai, "/v1/models", key))
	}
	if got := list("key-a"); strings.Count(got, `"object":"model"`) != 1 || !strings.Contains(got, `"m"`) {
		t.Error(got)
	}
	if got := list("key-b"); strings.Count(got, `"object":"model"`) < 2 {
		t.Error(got)
	}
	w.want(404, ask{tag: "hidden", token: "key-a", model: "ornith-fast"})
	first := w.start(ask{tag: "a1", token: "key-a"})
	w.awaitLeases(1)
	second := w.queue(ask{tag: "a2", token: "key-a"}, 1)
	if a := w.want(429, ask{tag: "a3", token: "key-a"}); !strings.Contains(string(a.body), "principal_limit") || a.header.Get("Retry-After") == "" {
		t.Errorf("%s %v", a.body, a.header)
	}
	other := w.start(ask{tag: "b1", token: "key-b"})
	w.awaitLeases(2)
	if c := w.waiters()[0].Candidates; len(c) == 0 || c[0].Reason != "principal_limit" {
		t.Errorf("%+v", c)
	}
	if said := w.iopctl(0, "requests", "explain", w.waiters()[0].Request); !strings.Contains(said, "max_in_flight") {
		t.Error(said)
	}
	w.apply(func(l *layout) {
		l.cluster = withPrincipals(map[string]any{"ref": "team-a", "models": []any{"m"}, "max_in_flight": 2})
	})
	w.awaitLeases(3)
	b.LetAll()
	for _, f := range []*flight{first, second, other} {
		if got := f.wait(t); got.status != 200 {
			t.Errorf("%s: %d %s", f.ask.tag, got.status, got.body)
		}
	}
	w.awaitIdle()
}

// TestFairShare: in pure order ten requests of one principal come before the one of another; with fairness they take turns.
func TestFairShare(t *testing.T) {
	t.Parallel()
	for _, fairness := range []string{"none", "principal"} {
		t.Run(fairness, func(t *testing.T) {
			b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
			l := shared(b, 1)
			l.cluster = withPrincipals()
			l.edits = map[string]any{"provider_pool.fairness": fairness}
			w := newWorld(t, l)
			flights := []*flight{w.start(ask{tag: "a0", token: "key-a"})}
			w.awaitLeases(1)
			want := []string{"a0", "a1", "a2", "a3", "b1", "b2"}
			for n, tag := range want[1:] {
				flights = append(flights, w.queue(ask{tag: tag, token: "key-" + tag[:1]}, n+1))
			}
			if fairness == "principal" {
				want = []string{"a0", "a1", "b1", "a2", "b2", "a3"}
			}
			for n := range want {
				await(t, fmt.Sprint("run ", n+1, " is at the backend"), func() bool { return len(b.Tags()) == n+1 })
				b.Let(1)
			}
			for _, f := range flights {
				f.wait(t)
			}
			if got := b.Tags(); !slices.Equal(got, want) {
				t.Errorf("the backend saw %v, want %v", got, want)
			}
			w.awaitIdle()
		})
	}
}

func fetchAs(t *testing.T, address, path, key string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var raw json.RawMessage
	if err := json.NewDecoder(res.Body).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// usage asks for the ledger.
func (w *world) usage(args ...string) adminapi.UsageReport {
	w.t.Helper()
	out, _ := w.iopctlBoth(0, append([]string{"usage", "-o", "json"}, args...)...)
	var r adminapi.UsageReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	return r
}

// TestTheLedgerCountsEachRunOnce: the edge is killed just when a client has its answer, and in the middle of one. Every run that
// the backend ended or lost is in the ledger once; the tokens are those of the runs that could be reported, and the others
// are named. It reads the same from the files of the edge when that is down.
func TestTheLedgerCountsEachRunOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 7, Usage: true}})
	l := shared(b, 2)
	l.cluster = withPrincipals()
	l.throttled = true
	w := newWorld(t, l)
	runs := uint64(0)
	for round := range rounds(4, 20) {
		for i := range 3 {
			w.want(200, ask{tag: fmt.Sprint("r", round, "-", i), stream: i%2 == 0, token: "key-a"})
			runs++
		}
		if round%2 == 1 {
			held := fmt.Sprint("held", round)
			b.SetFor(held, backend.Plan{Tokens: 7, Usage: true, Hold: backend.AfterTokens, At: 3})
			w.start(ask{tag: held, stream: true, token: "key-a"})
			await(t, "the run has begun", func() bool { _, begun := b.Run(held); return begun })
			runs++
		}
		w.edge.kill()
		b.LetAll()
		w.restartEdge()
		w.awaitLink("n1")
		w.awaitIdle()
		b.HoldAgain()
		r := w.usage("--by", "principal,token")
		if len(r.Rows) != 1 || r.Rows[0].Principal != "team-a" || r.Rows[0].Token != "app-a" {
			t.Fatalf("round %d: %+v", round, r)
		}
		u := r.Rows[0]
		if told := u.Requests - u.Untold; u.Requests != runs || u.Prompt != 5*told || u.Completion != 7*told {
			t.Fatalf("round %d: %d runs, and the ledger has %+v", round, runs, u)
		}
		t.Logf("round %d: %d runs, %d of them nobody could report", round, u.Requests, u.Untold)
	}
	want := w.usage()
	csv := w.iopctl(0, "usage", "--by", "day,principal,model", "-o", "csv")
	if !strings.HasPrefix(csv, "DAY,PRINCIPAL,MODEL,REQUESTS,") || strings.Count(csv, "\n") < 2 {
		t.Error(csv)
	}
	w.edge.kill()
	if got := w.usage("--data-dir", w.dataDir()); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("offline: %+v, want %+v", got, want)
	}
	w.restartEdge()
}
