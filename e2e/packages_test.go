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
	"testing"
	"time"
)

// coderPackages is the directory of the coding agents' lock file.
const coderPackages = "coders"

// packages gives a directory that holds the npm packages of the lock file in dir. They are installed once per lock file
// into the user's cache, without running their scripts, and never into this repository. The test is skipped if they can't
// be had; with E2E_CLIENTS=1, as in CI, that is a failure. The coders are only installed, and then have to be there, with
// E2E_CODERS=1.
func packages(t *testing.T, dir string) string {
	t.Helper()
	at, err := havePackages(t.Context(), dir)
	switch {
	case err == nil:
		return at
	case os.Getenv("E2E_CLIENTS") == "1" && filepath.Base(dir) != coderPackages, os.Getenv("E2E_CODERS") == "1":
		t.Fatal(err)
	default:
		t.Skip("the clients can't be run: ", err)
	}
	return ""
}

func havePackages(ctx context.Context, dir string) (string, error) {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("%w (Node 20 or newer; Debian: apt-get install nodejs npm)", err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	at := filepath.Join(cache, "iop", "e2e-"+filepath.Base(dir)+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
		return at, err
	}
	if filepath.Base(dir) == coderPackages && os.Getenv("E2E_CODERS") != "1" {
		return "", errors.New("they are 800 MB and not there yet; E2E_CODERS=1 installs them")
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(filepath.Dir(at), "e2e-part-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(part) }()
	if err := fetchPackages(ctx, part, dir); err != nil {
		return "", err
	}
	if err := os.Rename(part, at); err != nil {
		if _, there := os.Stat(at); there != nil { // nobody else was faster
			return "", err
		}
	}
	return at, nil
}

func fetchPackages(ctx context.Context, to, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", to)
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, tail(string(out), 20))
	}
	return nil
}
