//go:build unix

package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/noded/adapter"
	"iop/noded/adapter/cli"
)

// program writes a program that answers where it was called from.
func program(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\necho \"I am $0\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, to, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// A program is known by the file that it is, not by the name as it is written; and it is the listed path that runs.
func TestOnlyListedProgramsAreStarted(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	codex := program(t, filepath.Join(bin, "codex"))
	box := program(t, filepath.Join(dir, "box"))
	linked := link(t, box, filepath.Join(bin, "ls"))
	private := program(t, filepath.Join(dir, "opt", "x"))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for name, c := range map[string]struct {
		command string
		allowed []string
		starts  string // "": nothing
	}{
		"any":                               {private, nil, private},
		"none":                              {"codex", []string{}, ""},
		"by name":                           {"codex", []string{"claude", "codex"}, codex},
		"its path for its name":             {codex, []string{"codex"}, codex},
		"its name for its path":             {"codex", []string{codex}, codex},
		"by path":                           {private, []string{private}, private},
		"another name":                      {"sh", []string{"codex"}, ""},
		"the name elsewhere":                {program(t, filepath.Join(dir, "evil", "codex")), []string{"codex"}, ""},
		"the name before another path":      {"codex", []string{program(t, filepath.Join(dir, "other", "codex"))}, ""},
		"a link of the name elsewhere":      {link(t, "/bin/sh", filepath.Join(dir, "evil2", "codex")), []string{"codex"}, ""},
		"a way round through ..":            {filepath.Join(bin, "..") + "/evil/codex", []string{"codex"}, ""},
		"another name of a listed file":     {link(t, box, filepath.Join(dir, "evil", "sh")), []string{"ls"}, ""},
		"the file of a listed link":         {box, []string{"ls"}, ""},
		"a link to a listed file, its name": {link(t, codex, filepath.Join(dir, "evil3", "codex")), []string{"codex"}, codex},
		"a listed link":                     {"ls", []string{"ls"}, linked},
		"listed, and not there":             {"codex", []string{filepath.Join(dir, "gone", "codex")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(x *cli.Config) { x.Command, x.Allowed = []string{c.command}, c.allowed })
			err, denied := w.adapter.Probe(t.Context(), ""), w.adapter.Permitted()
			r, end := w.do(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
			if c.starts == "" {
				if !errors.Is(err, cli.ErrNotListed) || !errors.Is(denied, cli.ErrNotListed) || !strings.Contains(err.Error(), c.command) {
					t.Errorf("probe %v, permitted %v", err, denied)
				}
				if end.Dispatched != adapter.DispatchedNo || strings.Contains(r.text(), "I am") {
					t.Errorf("it was started: %+v, %s", end, r.text())
				}
				return
			}
			if err != nil || denied != nil || !strings.Contains(r.text(), "I am "+c.starts) {
				t.Errorf("probe %v, permitted %v, end %+v, answer %s; want %s", err, denied, end, r.text(), c.starts)
			}
		})
	}
}

// A listed program may be installed later, and a link may come to point elsewhere: each run looks anew.
func TestListedProgramsAreLookedUpForEachRun(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "codex")
	w := newWorld(t, func(c *cli.Config) {
		c.Command, c.Allowed = []string{path}, []string{filepath.Join(dir, "listed", "codex")}
	})
	if err := w.adapter.Probe(t.Context(), ""); err == nil || w.adapter.Permitted() != nil {
		t.Fatalf("a listed program that is not there: probe %v, permitted %v", err, w.adapter.Permitted())
	}
	link(t, program(t, filepath.Join(dir, "listed", "codex")), path)
	if err := w.adapter.Probe(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	program(t, path)
	if err := w.adapter.Probe(t.Context(), ""); !errors.Is(err, cli.ErrNotListed) {
		t.Errorf("another program in its place: %v", err)
	}
}
