package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// clientsVar set to 1 makes it a failure that the clients can't be installed: CI has the network, a laptop may not.
const clientsVar = "E2E_CLIENTS"

// TestClients has the SDKs that people use run their checks (e2e/clients) against real daemons. The packages have pinned
// versions, are installed once per lock file into the user's cache, and never into this repository.
func TestClients(t *testing.T) {
	dir := installed(t)
	t.Parallel()
	env := clientWorld(t)
	// One after another: they share the slot that is to be taken.
	for script, least := range map[string]int{"openai": 22, "ai": 25, "langchain": 13, "anthropic": 10} {
		t.Run(script, func(t *testing.T) {
			runScript(t, dir, script+".mjs", env, least)
		})
	}
}

// clientWorld starts two gateways in front of demo providers, and returns what the scripts are to know of them.
func clientWorld(t *testing.T) []string {
	w := newWorld(t, layout{
		providers: []provider{
			{id: "quick", capacity: 32, demo: map[string]any{"words": 14, "word_interval_ms": 2, "first_token_ms": 5}},
			{id: "slow", capacity: 32, demo: map[string]any{"words": 2000, "word_interval_ms": 20, "first_token_ms": 10}},
		},
		models: map[string][]string{"team/quick:1b": {"quick"}, "slow": {"slow"}},
		tokens: map[string]string{"app": "key-of-app"},
	})
	busy := newWorld(t, layout{
		providers: []provider{{id: "busy", capacity: 1, demo: map[string]any{"words": 20, "word_interval_ms": 100, "first_token_ms": 5}}},
		models:    map[string][]string{"team/quick:1b": {"busy"}},
		tokens:    map[string]string{"app": "key-of-app"},
		queue:     1, timeout: 1200 * time.Millisecond,
	})
	return append(os.Environ(), "BASE_URL=http://"+w.edge.openai+"/v1", "BUSY_URL=http://"+busy.edge.openai+"/v1",
		"API_KEY=key-of-app", "QUICK=team/quick:1b", "SLOW=slow", "EMBED=team/quick:1b", "NO_PROXY=127.0.0.1")
}

var passed = regexp.MustCompile(`(?m)^# pass (\d+)$`)

// runScript runs one script under node's own test runner. least is how many checks it must have passed: one that ends
// early must not look like one that is content.
func runScript(t *testing.T, dir, name string, env []string, least int) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "node", "--test-reporter=tap", filepath.Join(dir, name))
	c.Env, c.WaitDelay = env, time.Second
	out, err := c.CombinedOutput()
	n := 0
	if m := passed.FindSubmatch(out); m != nil {
		n, _ = strconv.Atoi(string(m[1])) // digits
	}
	if err != nil || n < least {
		t.Errorf("%s: %v, %d checks passed, want %d:\n%s", name, err, n, least, out)
	}
}

// installed gives a directory with the scripts, below the packages that they need. It skips the test if it can't be had.
func installed(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			unavailable(t, program+" is not installed (Node 20 or newer; Debian: apt-get install nodejs npm)")
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		unavailable(t, err.Error())
	}
	lock, err := os.ReadFile(filepath.Join("clients", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	root := filepath.Join(cache, "iop", "e2e-clients-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		if err := install(t, root); err != nil {
			unavailable(t, err.Error())
		}
	}
	dir, err := os.MkdirTemp(root, "run-") //nolint:usetesting // it must be below the packages
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	copyFiles(t, dir, "*.mjs")
	return dir
}

func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(clientsVar) == "1" {
		t.Fatal(why)
	}
	t.Skip("the SDKs can't be run: " + why)
}

// install lets npm put the packages of the lock file beside root and moves them there whole.
func install(t *testing.T, root string) error {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(root), "e2e-clients-part-") //nolint:usetesting // it becomes root
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(part) }()
	copyFiles(t, part, "package*.json")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", part)
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, tail(string(out), 20))
	}
	if err := os.Rename(part, root); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(root); there != nil { // somebody else was not faster
			return err
		}
	}
	return nil
}

func copyFiles(t *testing.T, to, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("clients", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is named clients/%s: %v", pattern, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(f)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
