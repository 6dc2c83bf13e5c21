package backend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func post(ctx context.Context, t *testing.T, b *Backend, body string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	return http.DefaultClient.Do(r)
}

func start(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func until(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !fn(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestAnswersAreTheirFrames(t *testing.T) {
	t.Parallel()
	for _, p := range []Plan{{}, {Split: 1, Text: []string{"é", "🙂"}, Usage: true}, {Comments: true, Tokens: 2}} {
		b := start(t, Options{Default: p})
		res, err := post(t.Context(), t, b, `{"model":"m","stream":true,"user":"a"}`)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if want := bytes.Join(p.Frames("/v1/chat/completions", "m"), nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		res, err = post(t.Context(), t, b, `{"model":"m","metadata":{"tag":"b"}}`)
		if err != nil {
			t.Fatal(err)
		}
		got, err = io.ReadAll(res.Body)
		if want := p.Plain("/v1/chat/completions", "m"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if s := b.Stats(); s.Current != 0 || s.Total != 2 || s.Finished != 2 || strings.Join(b.Tags(), "") != "ab" {
			t.Errorf("stats %+v, tags %v", s, b.Tags())
		}
	}
}

func TestLimitIsHardAndCounted(t *testing.T) {
	t.Parallel()
	b := start(t, Options{Limit: 1, Default: Plan{Hold: BeforeHead}})
	first := make(chan int, 1)
	go func() {
		res, err := post(t.Context(), t, b, `{"model":"m"}`)
		if err != nil {
			first <- 0
			return
		}
		first <- res.StatusCode
	}()
	until(t, "the first run is held", func() bool { return b.Stats().Held == 1 })
	res, err := post(t.Context(), t, b, `{"model":"m"}`)
	if err != nil || res.StatusCode != 503 {
		t.Fatal(res, err)
	}
	b.Let(1)
	if got := <-first; got != 200 {
		t.Error("first answered", got)
	}
	if s := b.Stats(); s.Violations != 1 || s.Peak != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestDropIsNoCleanEnd(t *testing.T) {
	t.Parallel()
	b := start(t, Options{Default: Plan{Drop: AfterTokens, At: 2}})
	res, err := post(t.Context(), t, b, `{"model":"m","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.ReadAll(res.Body); err == nil {
		t.Error("the stream ended cleanly")
	}
	b.Set(Plan{Drop: BeforeHead})
	if _, err = post(t.Context(), t, b, `{"model":"m"}`); err == nil {
		t.Error("an answer came")
	}
	until(t, "both dropped", func() bool { r := b.Runs(); return r[0].End == Dropped && r[1].End == Dropped })
}

func TestAbortIsSeen(t *testing.T) {
	t.Parallel()
	for _, p := range []Plan{{Never: true}, {Hold: BeforeHead}, {Hold: AfterHead}, {Hold: AfterTokens, At: 1}, {First: time.Hour}} {
		b := start(t, Options{Default: p})
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if res, err := post(ctx, t, b, `{"model":"m","stream":true}`); err == nil {
				_, _ = io.ReadAll(res.Body)
			}
		}()
		until(t, "the run runs", func() bool { return b.Stats().Current == 1 })
		leave()
		<-done
		until(t, "the abort is seen", func() bool { s := b.Stats(); return s.Aborted == 1 && s.Current == 0 && s.Held == 0 })
	}
}

func TestRefusedIsRefusedAndComesBack(t *testing.T) {
	t.Parallel()
	b := start(t, Options{})
	b.Refuse()
	if _, err := post(t.Context(), t, b, `{"model":"m"}`); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
	if err := b.Accept(); err != nil {
		t.Fatal(err)
	}
	if res, err := post(t.Context(), t, b, `{"model":"m"}`); err != nil || res.StatusCode != 200 {
		t.Error(res, err)
	}
}

func TestBusyAndFailuresAndSlowHeads(t *testing.T) {
	t.Parallel()
	b := start(t, Options{FailEvery: 2, Default: Plan{SlowHead: 10 * time.Microsecond}})
	b.SetFor("busy", Busy())
	for i, want := range []int{200, 500, 200, 500} {
		res, err := post(t.Context(), t, b, `{"model":"m"}`)
		if err != nil || res.StatusCode != want {
			t.Fatal(i, res, err)
		}
	}
	res, err := post(t.Context(), t, b, `{"model":"m","user":"busy"}`)
	if err != nil || res.StatusCode != 503 {
		t.Fatal(res, err)
	}
	if s := b.Stats(); s.NotRun != 1 || s.Total != 4 || s.Current != 0 {
		t.Errorf("stats %+v", s)
	}
}
