package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"iop/cli"
	"iop/edged/adminapi"
)

// screen is an output that can be waited for.
type screen struct {
	mu    sync.Mutex
	grown *sync.Cond
	text  bytes.Buffer
	done  bool
}

func newScreen() *screen {
	s := &screen{}
	s.grown = sync.NewCond(&s.mu)
	return s
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.grown.Broadcast()
	return s.text.Write(p)
}

func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.grown.Broadcast()
}

// await waits for a text, and gives all that was written.
func (s *screen) await(t *testing.T, want string) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), want) {
		if s.done {
			t.Fatalf("it ended without %q:\n%s", want, s.text.String())
		}
		s.grown.Wait()
	}
	return s.text.String()
}

// running is a dev that runs.
type running struct {
	out  *screen
	stop context.CancelFunc
	code chan int
}

func startDev(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{out: newScreen(), stop: stop, code: make(chan int, 1)}
	t.Cleanup(stop)
	go func() {
		defer r.out.close()
		d := cli.Deps{Env: os.LookupEnv, Dev: dev}
		r.code <- cli.Run(ctx, d, append([]string{"dev"}, args...), strings.NewReader(""), r.out, r.out)
	}()
	return r
}

// iopctl runs a command and wants it to succeed.
func iopctl(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), cli.Deps{}, args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("iopctl %v: code %d: %s", args, code, errs.String())
	}
	return out.String()
}

// TestDev follows what dev prints: the curl line streams an answer, the status line shows the providers; after a stop and a
// new start on the same directory the configuration is still the first.
func TestDev(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		r := startDev(t, "--port", "0", "--admin-port", "0", "--no-detect", "--data-dir", dir)
		said := r.out.await(t, "Ctrl-C stops it.")
		openai := regexp.MustCompile(`curl -N (http://[^ ]+)`).FindStringSubmatch(said)[1]
		admin := regexp.MustCompile(`iopctl status --edge ([^\n ]+)`).FindStringSubmatch(said)[1]
		body := regexp.MustCompile(`-d '([^']+)'`).FindStringSubmatch(said)[1]
		if got := post(t, openai, body); !strings.Contains(got, "data: [DONE]") {
			t.Errorf("round %d: the answer does not end: %q", round, got)
		}
		var s adminapi.Status
		if err := json.Unmarshal([]byte(iopctl(t, "status", "--edge", admin, "-o", "json")), &s); err != nil {
			t.Fatal(err)
		}
		if s.Revision != 1 || len(s.Providers) != 1 || s.Providers[0].Status != "available" || s.Role != "leader" {
			t.Errorf("round %d: %+v", round, s)
		}
		if want := uint64(round + 1); s.Providers[0].Generation != want {
			t.Errorf("round %d: generation %d, want %d", round, s.Providers[0].Generation, want)
		}
		r.stop()
		if code := <-r.code; code != 0 {
			t.Errorf("round %d: code %d:\n%s", round, code, r.out.await(t, ""))
		}
	}
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", res.Status, got, err)
	}
	return string(got)
}

// A stop lets a running request end: the edge goes first, the backend's node after it.
func TestDevStopsGracefully(t *testing.T) {
	r := startDev(t, "--port", "0", "--admin-port", "0", "--no-detect", "--data-dir", t.TempDir())
	said := r.out.await(t, "Ctrl-C stops it.")
	openai := regexp.MustCompile(`curl -N (http://[^ ]+)`).FindStringSubmatch(said)[1]
	body := regexp.MustCompile(`-d '([^']+)'`).FindStringSubmatch(said)[1]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, openai, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	r.stop() // the head is here, the words are still to come
	got, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(got), "data: [DONE]") {
		t.Errorf("cut off: %q, %v", got, err)
	}
	if code := <-r.code; code != 0 {
		t.Errorf("code %d:\n%s", code, r.out.await(t, ""))
	}
}

func TestDevPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	for _, flag := range []string{"port", "admin-port"} {
		other := map[string]string{"port": "admin-port", "admin-port": "port"}[flag]
		r := startDev(t, "--"+flag, port, "--"+other, "0", "--no-detect", "--data-dir", t.TempDir())
		if code := <-r.code; code != cli.ExitFailure {
			t.Errorf("code %d", code)
		}
		said := r.out.await(t, "cure:")
		if !strings.Contains(said, "port "+port+" can't be used") || !strings.Contains(said, "--"+flag) {
			t.Errorf("%s", said)
		}
	}
}

// Two on one directory: the second says so and leaves the first alone.
func TestDevTwiceOnOneDirectory(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--port", "0", "--admin-port", "0", "--no-detect", "--data-dir", dir}
	first := startDev(t, args...)
	first.out.await(t, "Ctrl-C stops it.")
	second := startDev(t, args...)
	if code := <-second.code; code != cli.ExitFailure {
		t.Errorf("code %d", code)
	}
	first.stop()
	if code := <-first.code; code != 0 {
		t.Errorf("code %d:\n%s", code, first.out.await(t, ""))
	}
}
