//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"iop/noded/adapter"
	"iop/noded/adapter/cli"
)

// patience bounds a wait for a fact. It is no measure: a test that needs it has failed.
const patience = 30 * time.Second

// world is an adapter whose command is this binary, and where its runs leave traces.
type world struct {
	t       *testing.T
	config  cli.Config
	pids    string
	adapter *cli.Adapter
}

// newWorld makes an adapter that plays a script. edit may change its configuration.
func newWorld(t *testing.T, edit func(c *cli.Config), script ...string) *world {
	t.Helper()
	w := &world{t: t, pids: t.TempDir()}
	w.config = configOf(w.pids, filepath.Join(t.TempDir(), "runs"), script)
	if edit != nil {
		edit(&w.config)
	}
	a, err := cli.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.adapter = a
	t.Cleanup(func() { w.isClean() })
	return w
}

// noRaceSleep keeps a program with the race detector in it from sleeping for a second before it exits.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

func configOf(pids, scratch string, script []string) cli.Config {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return cli.Config{
		Command: append([]string{self, playAgent}, script...),
		Env:     []string{"PATH=" + os.Getenv("PATH"), pidsVar + "=" + pids, "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"), noRaceSleep},
		Scratch: scratch,
		Grace:   200 * time.Millisecond,
		Keeper:  []string{self, playKeeper},
	}
}

// isClean checks that nothing is left of any run.
func (w *world) isClean() {
	w.t.Helper()
	for _, pid := range w.processes() {
		if alive(pid) {
			w.t.Errorf("process %d of a run lives on", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if left, _ := os.ReadDir(w.config.Scratch); len(left) > 0 {
		w.t.Errorf("%d directories of runs are left", len(left))
	}
}

// processes are those that have left their pid.
func (w *world) processes() []int { return processesIn(w.pids) }

// command is the process of a run that no other of it has started, which is the keeper's child.
func (w *world) command() int {
	for _, pid := range w.processes() {
		if parent := w.parent(pid); parent > 0 && !exists(filepath.Join(w.pids, strconv.Itoa(parent))) {
			return pid
		}
	}
	w.t.Fatal("there is no command")
	return 0
}

// parent is the process that has started another of a run.
func (w *world) parent(pid int) int {
	b, _ := os.ReadFile(filepath.Join(w.pids, strconv.Itoa(pid)))
	parent, _ := strconv.Atoi(string(b))
	return parent
}

func processesIn(dir string) []int {
	var pids []int
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive tells whether a process runs; one that has ended and that nobody has waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !exists("/proc/self")
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// await waits for a fact.
func await(t testing.TB, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !fact(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not so: %s", patience, what)
		}
	}
}

// recorder keeps an answer.
type recorder struct {
	mu     sync.Mutex
	status int
	header http.Header
	body   bytes.Buffer
	refuse error // of Data
}

func (r *recorder) Head(status int, h http.Header) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.header = status, h
	return nil
}

func (r *recorder) Data(p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body.Write(p)
	return r.refuse
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.String()
}

// answer is what both kinds of answers have.
type answer struct {
	Choices []struct {
		Message struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"message"`
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error struct {
		Message string `json:"message"`
		Code    string `json:"code"`
		Param   string `json:"param"`
	} `json:"error"`
}

func (r *recorder) whole(t testing.TB) (a answer) {
	t.Helper()
	if err := json.Unmarshal(r.body.Bytes(), &a); err != nil {
		t.Fatalf("the answer %q: %v", r.text(), err)
	}
	return a
}

// streamed joins the text of a stream's chunks, and returns its finish reason and whether it ended with [DONE].
func (r *recorder) streamed(t testing.TB) (text, finish string, done bool) {
	t.Helper()
	for line := range strings.SplitSeq(r.text(), "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return text, finish, true
		}
		var a answer
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			t.Fatalf("chunk %q: %v", data, err)
		}
		for _, c := range a.Choices {
			text += c.Delta.Content
			if c.Finish != "" {
				finish = c.Finish
			}
		}
	}
	return text, finish, false
}

func call(body string) *adapter.Call {
	return &adapter.Call{Method: http.MethodPost, Path: "/v1/chat/completions", Body: []byte(body)}
}

const (
	hello       = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	helloStream = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

func (w *world) do(body string) (*recorder, adapter.End) {
	var r recorder
	end := w.adapter.Do(w.t.Context(), call(body), &r)
	return &r, end
}

// begin starts a run and returns what ends it, and what waits for its end.
func (w *world) begin(body string, r *recorder) (cancel context.CancelFunc, wait func() adapter.End) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ends := make(chan adapter.End, 1)
	go func() { ends <- w.adapter.Do(ctx, call(body), r) }()
	w.t.Cleanup(cancel)
	return cancel, func() adapter.End {
		select {
		case end := <-ends:
			return end
		case <-time.After(patience):
			w.t.Fatal("the run does not end")
			return adapter.End{}
		}
	}
}

func wantEnd(t testing.TB, end adapter.End, d adapter.Dispatched, code string) {
	t.Helper()
	if end.Dispatched != d || end.Code != code {
		t.Fatalf("the run ended with dispatched %s, code %q (%s); want %s, %q", end.Dispatched, end.Code, end.Message, d, code)
	}
}
