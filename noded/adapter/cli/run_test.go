//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"iop/noded/adapter"
	"iop/noded/adapter/cli"
)

func TestAnswerIsWhatTheCommandPrints(t *testing.T) {
	w := newWorld(t, nil, "raw one\\r\\ntw", "raw o \\xc3", "raw \\xa9\\n\\n", "raw three\\n\\n")
	const want = "one\ntwo é\n\nthree"
	r, end := w.do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if a := r.whole(t); r.status != 200 || a.Choices[0].Message.Content != want || a.Choices[0].Finish != "stop" {
		t.Errorf("status %d, %s; want %q", r.status, r.text(), want)
	}
	r, end = w.do(helloStream)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if text, finish, done := r.streamed(t); text != want || finish != "stop" || !done {
		t.Errorf("streamed %q, %q, done %v", text, finish, done)
	}
}

func TestACommandMayHaveNothingToSay(t *testing.T) {
	r, end := newWorld(t, nil).do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if a := r.whole(t); r.status != 200 || a.Choices[0].Message.Content != "" || a.Choices[0].Finish != "stop" {
		t.Errorf("status %d, %s; want an empty answer", r.status, r.text())
	}
}

func TestBinaryGarbageBecomesText(t *testing.T) {
	r, end := newWorld(t, nil, `raw a\xff\xfe\x00\x1b[31mb\xe2\x82`).do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	got := r.whole(t).Choices[0].Message.Content
	if !strings.HasPrefix(got, "a\uFFFD") || !strings.HasSuffix(got, "\uFFFD") || !strings.Contains(got, "b") {
		t.Errorf("the answer is %q", got)
	}
}

func TestPromptOnStdin(t *testing.T) {
	long := strings.Repeat("wörter ", 100_000)
	w := newWorld(t, nil, "echo")
	r, end := w.do(`{"model":"m","messages":[{"role":"user","content":"` + long + `end"}]}`)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if got := r.whole(t).Choices[0].Message.Content; got != long+"end" {
		t.Errorf("%d bytes came back of %d", len(got), len(long)+3)
	}
}

func TestPromptAsArgument(t *testing.T) {
	w := newWorld(t, func(c *cli.Config) { c.Prompt = cli.FeedArgument }, "say {model}: {prompt}")
	r, end := w.do(`{"model":"m","messages":[{"role":"user","content":"$(id) 'x' {model} \"; rm"}]}`)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if got := r.whole(t).Choices[0].Message.Content; got != `m: $(id) 'x' {model} "; rm` {
		t.Errorf("the answer is %q", got)
	}
}

func TestStdinThatNobodyReads(t *testing.T) {
	w := newWorld(t, nil, "say done")
	r, end := w.do(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 4<<20) + `"}]}`)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if got := r.whole(t).Choices[0].Message.Content; got != "done" {
		t.Errorf("the answer is %q", got)
	}
}

func TestPromptTooLongForAnArgument(t *testing.T) {
	w := newWorld(t, func(c *cli.Config) { c.Prompt = cli.FeedArgument }, "say {prompt}")
	r, end := w.do(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 4<<20) + `"}]}`)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if a := r.whole(t); r.status != 400 || a.Error.Code != "context_length_exceeded" || !strings.Contains(a.Error.Message, "stdin") {
		t.Errorf("status %d, %s", r.status, r.text())
	}
	if n := len(w.processes()); n != 0 {
		t.Errorf("%d processes were started", n)
	}
}

// A text that no argument can hold is the client's mistake. As a command that can't be started it would count against the
// provider: three of them, and nobody is served.
func TestZeroByteInAnArgumentIsNoFailedStart(t *testing.T) {
	w := newWorld(t, func(c *cli.Config) { c.Prompt = cli.FeedArgument }, "say {prompt}")
	r, end := w.do(`{"model":"m","messages":[{"role":"user","content":"a\u0000b"}]}`)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if a := r.whole(t); r.status != 400 || a.Error.Code != "invalid_value" {
		t.Errorf("status %d, %s", r.status, r.text())
	}
	if n := len(w.processes()); n != 0 {
		t.Errorf("%d processes were started", n)
	}
	w = newWorld(t, nil, "say done")
	if _, end := w.do(`{"model":"m","messages":[{"role":"user","content":"a\u0000b"}]}`); end.Code != "" {
		t.Errorf("on stdin: %+v", end)
	}
}

// The command sees what it is allowed to see, and runs where nothing else is.
func TestEnvironmentAndDirectory(t *testing.T) {
	t.Setenv("IOP_NODE_TOKEN", "very-secret")
	w := newWorld(t, nil, "env", "pwd")
	r, end := w.do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	lines := strings.Split(r.whole(t).Choices[0].Message.Content, "\n")
	dir := lines[len(lines)-1]
	if filepath.Dir(dir) != w.config.Scratch {
		t.Errorf("it ran in %s, not in %s", dir, w.config.Scratch)
	}
	for _, line := range lines[:len(lines)-1] {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"PATH", pidsVar, "GOCOVERDIR", "GORACE", "IOP_RUN", "PWD"}, name) {
			t.Errorf("it sees %s", line)
		}
	}
}

func TestADirectoryThatIsLockedIsRemoved(t *testing.T) {
	_, end := newWorld(t, nil, "lock", "say x").do(hello) // the world checks that nothing is left
	wantEnd(t, end, adapter.DispatchedYes, "")
}

func TestStopSequenceEndsTheRun(t *testing.T) {
	w := newWorld(t, nil, "raw before the E", "raw ND and after", "hang")
	r, end := w.do(`{"model":"m","stream":true,"stop":["XX","END"],"messages":[{"role":"user","content":"hello"}]}`)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if text, finish, done := r.streamed(t); text != "before the " || finish != "stop" || !done {
		t.Errorf("streamed %q, %q, done %v", text, finish, done)
	}
}

func TestWhatCanNotBeRunIsNotDispatched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "bare")
	if err := os.WriteFile(bare, []byte("neither a program nor a script"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(c *cli.Config){
		"not found":      func(c *cli.Config) { c.Command = []string{"there-is-no-such-command"} },
		"not executable": func(c *cli.Config) { c.Command = []string{file} },
		"no program":     func(c *cli.Config) { c.Command = []string{bare} },
		"no scratch":     func(c *cli.Config) { c.Scratch = filepath.Join(file, "runs") },
		"no keeper":      func(c *cli.Config) { c.Keeper = []string{file} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, edit)
			r, end := w.do(hello)
			wantEnd(t, end, adapter.DispatchedNo, adapter.CodeConnectFailed)
			if r.status != 0 || end.Message == "" {
				t.Errorf("status %d, message %q", r.status, end.Message)
			}
			if err := w.adapter.Probe(t.Context(), ""); err == nil && name != "no program" && name != "no keeper" {
				t.Error("the probe is content")
			}
		})
	}
}

func TestProbeIsContentWithACommandThatIsThere(t *testing.T) {
	if err := newWorld(t, nil).adapter.Probe(t.Context(), "/any"); err != nil {
		t.Error(err)
	}
}

func TestRefusedRequests(t *testing.T) {
	w := newWorld(t, nil, "say x")
	const user = `"messages":[{"role":"user","content":"hello"}]`
	const tools = `"tools":[{"type":"function","function":{"name":"f"}}]`
	for name, c := range map[string]struct {
		body, code, param string
		status            int
	}{
		"tools":         {`{"model":"m",` + tools + `,` + user + `}`, "unsupported_parameter", "tools", 400},
		"tool required": {`{"model":"m","tool_choice":"required",` + tools + `,` + user + `}`, "unsupported_parameter", "tools", 400},
		"tools unused":  {`{"model":"m","tool_choice":"none",` + tools + `,` + user + `}`, "", "", 200},
		"two choices":   {`{"model":"m","n":2,` + user + `}`, "unsupported_parameter", "n", 400},
		"logprobs":      {`{"model":"m","logprobs":true,` + user + `}`, "unsupported_parameter", "logprobs", 400},
		"image":         {`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}]}`, "unsupported_parameter", "messages[0].content", 400},
	} {
		t.Run(name, func(t *testing.T) {
			r, end := w.do(c.body)
			wantEnd(t, end, adapter.DispatchedYes, "")
			a := r.whole(t)
			if r.status != c.status || a.Error.Code != c.code || a.Error.Param != c.param {
				t.Errorf("status %d, %s", r.status, r.text())
			}
			if c.status == 400 && !strings.Contains(a.Error.Message, ";") {
				t.Errorf("%q has no cure", a.Error.Message)
			}
		})
	}
	var r recorder
	end := w.adapter.Do(t.Context(), &adapter.Call{Method: "POST", Path: "/v1/embeddings", Body: []byte("{}")}, &r)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if r.status != 404 {
		t.Errorf("embeddings: status %d, want 404", r.status)
	}
}
