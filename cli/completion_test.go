package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBashCompletesWithoutItsPackage presses Tab in a bash that knows nothing but what iopctl printed.
func TestBashCompletesWithoutItsPackage(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "iopctl.bash")
	if err := os.WriteFile(script, []byte(made(t, "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gpu 3.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, answer, want string }{
		{"iopctl nodes drain gpu-", `gpu-1\tMac\ngpu-2\n:4`, "gpu-1,gpu-2"},
		{"iopctl nodes drain gpu-2", `gpu-2\tMac\n:4`, "gpu-2"},
		{"iopctl nodes drain ", `gpu-1\n:4`, "gpu-1"},
		{"iopctl -o ", `table\nwide\n:4`, "table,wide"},
		{"iopctl refresh -f gpu", `yaml\n:8`, "gpu 3.yaml"},
	} {
		run := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", `source "$1" && answer=$3 && iopctl() { printf "$answer\n"; } && compopt() { :; } && COMP_LINE=$2 COMP_POINT=${#2} COMP_TYPE=63 &&
			__start_iopctl && (IFS=,; set -- "${COMPREPLY[@]}"; printf '%s' "$*")`, "bash", script, c.line, c.answer)
		run.Dir = dir
		out, err := run.CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%q: %v %q, want %q", c.line, err, out, c.want)
		}
	}
}
