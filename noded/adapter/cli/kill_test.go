//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"iop/noded/adapter"
	"iop/noded/adapter/cli"
)

// naughty are commands that do not end by themselves, with the number of their processes. A daemon leaves session, process
// group and environment.
var naughty = map[string]struct {
	script    []string
	processes int
}{
	"hangs":             {[]string{"say x", "hang"}, 1},
	"ignores SIGTERM":   {[]string{"deaf", "say x", "hang"}, 1},
	"closes its output": {[]string{"say x", "close", "hang"}, 1},
	"grandchildren":     {[]string{"child child hang", "child deaf,hang", "say x", "hang"}, 4},
	"floods":            {[]string{"say x", "flood"}, 1},
}

func TestCancelEndsAll(t *testing.T) {
	for name, c := range naughty {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, c.script...)
			r := &recorder{}
			cancel, wait := w.begin(helloStream, r)
			await(t, "the output has begun, and all processes are there", func() bool {
				return strings.Contains(r.text(), `"content"`) && len(w.processes()) >= c.processes
			})
			cancel()
			end := wait()
			wantEnd(t, end, adapter.DispatchedYes, adapter.CodeCanceled)
			w.isClean()
		})
	}
}

func TestTimeLimitEndsAll(t *testing.T) {
	w := newWorld(t, func(c *cli.Config) { c.Timeout = 500 * time.Millisecond }, "err still at it", "child deaf,hang", "deaf", "hang")
	r, end := w.do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if a := r.whole(t); r.status != 504 || a.Error.Code != "provider_timeout" || !strings.Contains(a.Error.Message, "timeout_ms") {
		t.Errorf("status %d, %s", r.status, r.text())
	}
	w.isClean()
}

func TestTimeLimitInMidStreamBreaksIt(t *testing.T) {
	for limit := 500 * time.Millisecond; limit < patience; limit *= 2 { // until the words come before it
		w := newWorld(t, func(c *cli.Config) { c.Timeout = limit }, "raw words", "hang")
		r, end := w.do(helloStream)
		if r.status == 504 {
			continue
		}
		wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendBroke)
		if text, _, done := r.streamed(t); text != "words" || done || !strings.Contains(r.text(), "provider_timeout") {
			t.Errorf("streamed %q", r.text())
		}
		return
	}
	t.Error("the words never came")
}

func TestDeadlineOfTheCallEndsTheRun(t *testing.T) {
	w := newWorld(t, nil, "hang")
	c := call(hello)
	c.Deadline = time.Now().Add(300 * time.Millisecond)
	var r recorder
	end := w.adapter.Do(t.Context(), c, &r)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if r.status != 504 {
		t.Errorf("status %d", r.status)
	}
}

func TestOutputLimitEndsTheFlood(t *testing.T) {
	w := newWorld(t, func(c *cli.Config) { c.OutputMax = 1 << 20 }, "flood")
	r, end := w.do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if a := r.whole(t); r.status != 502 || a.Error.Code != "provider_error" || !strings.Contains(a.Error.Message, "output_max_bytes") {
		t.Errorf("status %d, %s", r.status, r.text())
	}
}

func TestAnEndlessLineEndsTheRun(t *testing.T) {
	w := newWorld(t, func(c *cli.Config) { c.Parser = cli.ParserLines }, "line 5000000", "hang")
	r, end := w.do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if r.status != 502 || !strings.Contains(r.text(), "longer than") {
		t.Errorf("status %d, %s", r.status, r.text())
	}
}

// What a command leaves running when it ends itself is ended, and the answer is whole.
func TestWhatACommandLeavesBehindIsEnded(t *testing.T) {
	for name, script := range map[string][]string{
		"child":      {"child hang", "await 2", "say x"},
		"deaf child": {"child deaf,hang", "await 2", "say x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, script...)
			r, end := w.do(hello)
			wantEnd(t, end, adapter.DispatchedYes, "")
			if got := r.whole(t).Choices[0].Message.Content; got != "x" {
				t.Errorf("the answer is %q", got)
			}
			w.isClean()
		})
	}
}

func TestClientThatIsGoneEndsTheRun(t *testing.T) {
	w := newWorld(t, nil, "say x", "hang")
	r := &recorder{refuse: os.ErrClosed}
	end := w.adapter.Do(t.Context(), call(helloStream), r)
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeAnswerFailed)
	w.isClean()
}

func TestExitCodeAndLastWords(t *testing.T) {
	const secret = "sk-very-secret"
	w := newWorld(t, func(c *cli.Config) { c.Secrets = []string{secret} }, "raw half", "err "+strings.Repeat("noise ", 5000), "err \x1b[31mthe key "+secret+" is\x07 wrong", "exit 7")
	r, end := w.do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	a := r.whole(t)
	if r.status != 502 || a.Error.Code != "provider_error" || !strings.Contains(a.Error.Message, "code 7") || !strings.HasSuffix(a.Error.Message, "the key [redacted] is wrong") {
		t.Errorf("status %d, %s", r.status, r.text())
	}
	if len(a.Error.Message) > 3000 {
		t.Errorf("the message has %d bytes", len(a.Error.Message))
	}
	r, end = w.do(helloStream)
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendBroke)
	if text, _, done := r.streamed(t); text != "half" || done || !strings.Contains(r.text(), "code 7") {
		t.Errorf("streamed %s", r.text())
	}
}

// stages are the moments of a run at which somebody is killed, with what shows that it has come.
var stages = map[string]struct {
	script []string
	come   func(r string, pids int) bool
}{
	"spawned":                    {[]string{"child hang", "hang"}, func(_ string, pids int) bool { return pids > 0 }},
	"before output":              {[]string{"child hang", "hang"}, func(_ string, pids int) bool { return pids > 1 }},
	"in mid output":              {[]string{"child hang", "raw one ", "hang"}, func(r string, pids int) bool { return pids > 1 && strings.Contains(r, "one") }},
	"after output, before exit":  {[]string{"child hang", "play testdata/codex-ok.jsonl", "close", "hang"}, func(r string, pids int) bool { return pids > 1 && strings.Contains(r, "Madrid") }},
	"while it ends its children": {[]string{"child deaf,hang", "await 2", "say one", "exit 0"}, func(r string, pids int) bool { return pids > 1 && strings.Contains(r, "one") }},
}

func TestKillOfTheCommandAtEveryStage(t *testing.T) {
	for name, s := range stages {
		if strings.HasPrefix(name, "while") {
			continue // it is gone by then
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, inPlace(t, s.script)...)
			r := &recorder{}
			_, wait := w.begin(helloStream, r)
			await(t, "it has come to the stage: "+name, func() bool { return s.come(r.text(), len(w.processes())) })
			if err := syscall.Kill(w.command(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			end := wait()
			if r.text() != "" && strings.Contains(r.text(), "chat.completion.chunk") {
				wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendBroke)
			} else {
				wantEnd(t, end, adapter.DispatchedYes, "")
			}
			if !strings.Contains(r.text(), "provider_error") || !strings.Contains(r.text(), "killed") {
				t.Errorf("the client hears %s", r.text())
			}
			w.isClean()
		})
	}
}

// inPlace makes the paths in a script absolute: a run is elsewhere.
func inPlace(t testing.TB, script []string) []string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, 0, len(script))
	for _, s := range script {
		out = append(out, strings.ReplaceAll(s, "testdata/", dir+"/testdata/"))
	}
	return out
}

// beNode is a node with one run on it: its arguments are the directories for pids and runs, then the script. What the client
// would get goes to stdout.
func beNode(args []string) int {
	a, err := cli.New(configOf(args[0], args[1], args[2:]))
	if err != nil {
		panic(err)
	}
	end := a.Do(contextOfNode(), call(helloStream), &passing{})
	_ = json.NewEncoder(os.Stderr).Encode(end)
	return 0
}

func TestKillOfTheNodeAtEveryStage(t *testing.T) {
	for name, s := range stages {
		t.Run(name, func(t *testing.T) {
			pids, scratch := t.TempDir(), filepath.Join(t.TempDir(), "runs")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			node := exec.Command(self, append([]string{playNode, pids, scratch}, inPlace(t, s.script)...)...)
			out := &output{}
			node.Stdout = out
			if err := node.Start(); err != nil {
				t.Fatal(err)
			}
			await(t, "it has come to the stage: "+name, func() bool { return s.come(out.String(), len(processesIn(pids))) })
			_ = node.Process.Kill()
			_ = node.Wait()
			await(t, "all processes of the run are gone", func() bool {
				for _, pid := range processesIn(pids) {
					if alive(pid) {
						return false
					}
				}
				return true
			})
			await(t, "the run's directory is gone", func() bool { left, _ := os.ReadDir(scratch); return len(left) == 0 })
		})
	}
}
