package packages

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asked skips a test that nobody asked for. Once it is asked for it has to run.
func asked(t *testing.T, tools ...string) {
	t.Helper()
	if os.Getenv("E2E_PACKAGES") != "1" {
		t.Skip("E2E_PACKAGES=1 runs it: it takes root, minutes, and from Debian: mmdebstrap systemd-container lintian rpm iproute2")
	}
	if os.Getuid() != 0 {
		t.Fatal("E2E_PACKAGES=1 takes root")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: apt-get install -y --no-install-recommends mmdebstrap systemd-container lintian rpm iproute2", err)
		}
	}
}

// root is the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// do runs a command in dir and gives what it says on standard output; that it fails is an error with all that it said.
func do(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := try(t.Context(), dir, env, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func try(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var out, bad bytes.Buffer
	c.Stdout, c.Stderr = &out, &bad
	if err := c.Run(); err != nil {
		return out.String(), errors.New(name + " " + strings.Join(args, " ") + ": " + err.Error() + "\n" + out.String() + bad.String())
	}
	return out.String(), nil
}

// await asks again until it is so, for a minute at most.
func await(t *testing.T, what string, so func() (bool, string)) {
	t.Helper()
	var last string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ok, said := so()
		if ok {
			return
		}
		last = said
	}
	t.Fatalf("not within a minute: %s; at last: %s", what, last)
}

// tempDir is like t.TempDir, but others may look into it, as those whom the tests become do.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "iop-packages-") //nolint:usetesting // whose directory is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	return dir
}
