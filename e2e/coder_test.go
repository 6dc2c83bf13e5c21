//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// coder is a command-line agent that has the gateway for its model: codex asks POST /v1/responses, claude POST /v1/messages.
type coder struct {
	name string
	file string        // below the packages
	idle time.Duration // how long it is told to bear silence
	// args are those of one question; a brief one comes with few instructions and no tools.
	args func(prompt string, brief bool) []string
	// files are written below its home, env is what it is told of the gateway.
	files func(url string, brief bool) map[string]string
	env   func(url string) []string
	text  func(line map[string]any) string // of the answer, in a line of its output
}

func coders(idle time.Duration) []coder {
	return []coder{codex(idle), claude()}
}

func codex(idle time.Duration) coder {
	return coder{
		name: "codex", file: "node_modules/@openai/codex/bin/codex.js", idle: idle,
		args: func(prompt string, _ bool) []string {
			return []string{"exec", "--json", "--skip-git-repo-check", "--ephemeral", "-s", "read-only", "-m", "m", prompt}
		},
		files: func(url string, brief bool) map[string]string {
			less := ""
			if brief {
				less = codexBrief
			}
			return map[string]string{"say.md": "Count.", ".codex/config.toml": "model_provider = \"gateway\"\n" + less + `
[model_providers.gateway]
name = "gateway"
base_url = "` + url + `/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
stream_idle_timeout_ms = ` + strconv.FormatInt(idle.Milliseconds(), 10) + `
stream_max_retries = 0
request_max_retries = 0
`}
		},
		env: func(string) []string { return []string{"GATEWAY_KEY=" + coderKey} },
		text: func(line map[string]any) string {
			item, _ := line["item"].(map[string]any)
			if text, ok := item["text"].(string); ok && item["type"] == "agent_message" {
				return text
			}
			return ""
		},
	}
}

// codexBrief leaves out of a request what a small model would have to read for minutes.
const codexBrief = `
model_instructions_file = "../say.md"
web_search = "disabled"
include_permissions_instructions = false
include_apps_instructions = false
include_environment_context = false
[features]
shell_tool = false
unified_exec = false
apps = false
multi_agent = false
plugins = false
goals = false
`

func claude() coder {
	return coder{
		// Its install script only puts the binary in the place of the wrapper. It bears silence for 10 s at least.
		name: "claude", file: "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs", idle: 10 * time.Second,
		args: func(prompt string, brief bool) []string {
			args := []string{"-p", prompt, "--model", "m", "--output-format", "stream-json", "--verbose", "--include-partial-messages"}
			if brief {
				args = append(args, "--system-prompt", "Count.", "--tools", "", "--setting-sources", "", "--disable-slash-commands")
			}
			return args
		},
		files: func(string, bool) map[string]string { return nil },
		env: func(url string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=" + coderKey,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=0",
				"CLAUDE_ENABLE_BYTE_WATCHDOG=1", "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=10000",
				"CLAUDE_STREAM_FIRST_BYTE_TIMEOUT_MS=10000", "API_TIMEOUT_MS=11000",
			}
		},
		text: func(line map[string]any) string {
			if text, ok := line["result"].(string); ok && line["is_error"] == false {
				return text
			}
			return ""
		},
	}
}

// work is a question on its way in a coder.
type work struct {
	c    coder
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{}
}

// ask starts a coder with a question, in a home of its own and with nothing of this process's environment but the path.
func (c coder) ask(t *testing.T, packages string, w *world, prompt string, brief bool) *work {
	t.Helper()
	home, url := t.TempDir(), "http://"+w.edge.openai
	for name, text := range c.files(url, brief) {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := &work{c: c, done: make(chan struct{})}
	x.cmd = exec.Command("node", append([]string{filepath.Join(packages, c.file)}, c.args(prompt, brief)...)...)
	x.cmd.Dir = home
	x.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "NO_PROXY=127.0.0.1"}, c.env(url)...)
	x.cmd.Stdout, x.cmd.Stderr = &x.out, &x.out
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C reaches all of them
	x.cmd.WaitDelay = time.Second
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(x.done)
		_ = x.cmd.Wait() // the state is read from ProcessState
	}()
	t.Cleanup(func() { x.signal(syscall.SIGKILL); <-x.done })
	return x
}

func (x *work) signal(s syscall.Signal) { _ = syscall.Kill(-x.cmd.Process.Pid, s) }

func (x *work) ended() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// wait wants a good end and returns what the model said.
func (x *work) wait(t *testing.T) string {
	t.Helper()
	awaitWithin(t, 3*patience, x.c.name+" ends", x.ended)
	said := ""
	for line := range bytes.Lines(x.out.Bytes()) {
		var v map[string]any
		if json.Unmarshal(line, &v) == nil {
			said += x.c.text(v)
		}
	}
	if code := x.cmd.ProcessState.ExitCode(); code != 0 || said == "" {
		t.Fatalf("%s ended with code %d and said %q:\n%s", x.c.name, code, said, clipped(x.out.String()))
	}
	return strings.TrimSpace(said)
}

// clipped are the last lines of an output, none of them long.
func clipped(s string) string {
	lines := strings.Split(tail(s, 40), "\n")
	for i, l := range lines {
		lines[i] = l[:min(len(l), 300)]
	}
	return strings.Join(lines, "\n")
}
