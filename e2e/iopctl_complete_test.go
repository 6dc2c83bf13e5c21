package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// completeWorld is an edge with two nodes, of which one holds a request; another one waits.
func completeWorld(t *testing.T) *world {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := layout{
		providers: []provider{{id: "gpu-1", node: "alpha", url: b.URL(), capacity: 1}, {id: "gpu-2", node: "beta", url: b.URL(), capacity: 1}},
		models:    map[string][]string{"ornith:35b": {"gpu-1"}, "other": {"gpu-2"}},
		throttled: true,
	}
	w := newEdgeOnly(t, l)
	w.startNode("alpha")
	w.awaitLink("alpha")
	w.start(ask{tag: "holder", model: "ornith:35b", header: map[string][]string{"X-Request-Id": {"held-1"}}})
	w.awaitLeases(1)
	w.queue(ask{tag: "waiter", model: "ornith:35b", header: map[string][]string{"X-Request-Id": {"waits-1"}}}, 1)
	t.Cleanup(b.LetAll)
	return w
}

// TestCompletionKnowsWhatIs: what a shell is offered are the ids that there are now; without an edge it is offered nothing, in
// silence.
func TestCompletionKnowsWhatIs(t *testing.T) {
	t.Parallel()
	w := completeWorld(t)
	lease, waiter := w.leases()[0], w.waiters()[0]
	for _, c := range []struct {
		typed string
		want  string
	}{
		{"providers show ", "gpu-1 gpu-2"},
		{"providers drain ", "gpu-1 gpu-2"},
		{"providers undrain ", "gpu-1 gpu-2"},
		{"nodes show ", "alpha beta"},
		{"nodes drain ", "alpha beta"},
		{"nodes token ", "alpha beta"},
		{"models show ", "ornith:35b other"},
		{"leases inspect ", "1 " + lease.Request},
		{"queue cancel ", waiter.Request},
		{"requests explain ", lease.Request + " " + waiter.Request},
		{"cluster remove ", "edge-1"},
		{"cluster transfer ", "edge-1"},
		{"debug log --request ", lease.Request + " " + waiter.Request},
		{"debug story --node ", "alpha beta"},
		{"status -o ", "json table wide yaml"},
		{"usage --by ", "day model principal provider token"},
		{"usage --by day,", "day,model day,principal day,provider day,token"},
		{"config schema --kind ", "edge node"},
		{"nodes add ", ""},
		{"status ", ""},
	} {
		args := append([]string{"__complete"}, strings.Split(c.typed, " ")...)
		out, _ := w.iopctlBoth(0, args...)
		if got := offered(out); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q is offered %q, want %q", c.typed, got, c.want)
		}
		if strings.HasSuffix(c.typed, "-o ") || strings.Contains(c.typed, "--by") || strings.Contains(c.typed, "--kind") {
			continue
		}
		out, _ = w.iopctlBoth(0, append(args[:1:1], append([]string{"--edge", "127.0.0.1:1"}, args[1:]...)...)...)
		if got := offered(out); len(got) > 0 {
			t.Errorf("without an edge %q is offered %q", c.typed, got)
		}
	}
}

// offered are the words of __complete's answer, sorted, without what is said of them.
func offered(out string) []string {
	words := []string{}
	for line := range strings.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if word != "" && !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

// TestCompletionInShells: the scripts do in the shells themselves what they are for.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	w := completeWorld(t)
	// What a shell does at Tab, without a terminal: it calls the function that the script has set up, with the words typed. The word
	// lists that bash-completion would give are given where it is not installed.
	scripts := map[string]string{
		"bash": `
			[ -r /usr/share/bash-completion/bash_completion ] && source /usr/share/bash-completion/bash_completion
			declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
			compopt() { :; } # it works in a shell that completes only
			source <(iopctl completion bash)
			COMP_LINE="iopctl $1"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(iopctl $1 ""); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); COMP_TYPE=37; COMP_KEY=9
			__start_iopctl
			for x in "${COMPREPLY[@]}"; do echo "${x%% *}"; done`,
		"zsh": `
			compdef() { : }
			source <(iopctl completion zsh)
			_describe() { local x; for x in "${completions[@]}"; do x=${x//\\:/:}; print -r -- "${x%%:*}"; done }
			compstate=()
			words=(iopctl ${=1} ""); CURRENT=${#words}
			_iopctl`,
		"fish": `
			iopctl completion fish | source
			for x in (complete -C "iopctl $argv[1]"); string split -m1 \t -- $x | head -1; end`,
	}
	bin := filepath.Dir(program(t, "iopctl"))
	for shell, script := range scripts {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s here", shell)
			}
			for typed, want := range map[string][]string{
				"providers show ": {"gpu-1", "gpu-2"}, "nodes drain ": {"alpha", "beta"}, "cluster transfer ": {"edge-1"},
				"config schema --kind ": {"edge", "node"},
			} {
				if got := w.shell(t, path, script, bin, typed); !slices.Equal(got, want) {
					t.Errorf("%q is offered %q, want %q", typed, got, want)
				}
			}
		})
	}
	if out := w.iopctl(0, "completion", "powershell"); !strings.Contains(out, "Register-ArgumentCompleter -CommandName 'iopctl'") {
		t.Errorf("PowerShell's script: %s", tail(out, 5))
	}
}

func (w *world) shell(t *testing.T, path, script, bin, typed string) []string {
	t.Helper()
	args := []string{"-c", script, "sh", typed}
	if filepath.Base(path) == "fish" {
		args = []string{"--no-config", "-c", script, typed}
	} else {
		args = append([]string{map[string]string{"bash": "--norc", "zsh": "-f"}[filepath.Base(path)]}, args...)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "IOP_EDGE="+w.adminAddress(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s: %v", path, err)
	}
	words := strings.Fields(string(out))
	slices.Sort(words)
	return words
}
