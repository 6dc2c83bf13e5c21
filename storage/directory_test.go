package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iop/fsm"
)

func refusedOpen(t *testing.T, o Options, kind error, cures ...string) {
	t.Helper()
	s, err := Open(within(t), o)
	if err == nil {
		closeStore(t, s)
		t.Fatal("opened")
	}
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
	for _, c := range cures {
		if !strings.Contains(err.Error(), c) {
			t.Errorf("error %q does not say %q", err, c)
		}
	}
}

func edit(t *testing.T, path, old, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), old, text, 1)
	if changed == string(b) {
		t.Fatalf("%s does not have %q: %s", path, old, b)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	refusedOpen(t, Options{Dir: dir, Replica: "e1"}, ErrLocked, "process", "stop that process")
	if _, _, err := Inspect(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("inspect: %v", err)
	}
	closeStore(t, s)
	openAt(t, dir)
}

func TestDirectoryOfANewerVersion(t *testing.T) {
	dir, _ := filled(t)
	edit(t, filepath.Join(dir, identityFile), `"format":2`, `"format":3`)
	refusedOpen(t, Options{Dir: dir, Replica: "e1"}, ErrNewer, "format 3", `"v1"`, "run that version")
}

func TestDirectoryOfAnotherReplica(t *testing.T) {
	dir, want := filled(t)
	refusedOpen(t, Options{Dir: dir, Replica: "e2"}, ErrWrongReplica, `"e1"`, `"e2"`, "its own data directory")
	if s := openAt(t, dir); digest(s) != want {
		t.Error("the refusal changed something")
	}
}

func TestDirectoryThatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusedOpen(t, Options{Dir: dir, Replica: "e1"}, ErrNotOurs, "thesis.txt", "empty directory")
	if _, _, err := Inspect(dir); !errors.Is(err, ErrNotOurs) {
		t.Errorf("inspect: %v", err)
	}
}

func TestDirectoryThatCantBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(within(t), Options{Dir: filepath.Join(file, "data"), Replica: "e1"})
	if err == nil || !strings.Contains(err.Error(), "can be written") {
		t.Error(err)
	}
}

// TestMissingPartsAreRefused: a directory that was in use never starts from nothing.
func TestMissingPartsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string) error
		cure   string
	}{
		"log removed":      {func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, logDB)) }, "restore the directory from a backup"},
		"log emptied":      {func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, logDB), 0) }, "restore the directory from a backup"},
		"identity removed": {func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, identityFile)) }, "restore it from a backup"},
		"identity emptied": {func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, identityFile), 0) }, "restore the directory from a backup"},
		"identity without cluster": {func(t *testing.T, dir string) error {
			edit(t, filepath.Join(dir, identityFile), `"cluster":"`, `"was":"`)
			return nil
		}, "restore the directory from a backup"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := filled(t)
			if err := c.damage(t, dir); err != nil {
				t.Fatal(err)
			}
			refusedOpen(t, Options{Dir: dir, Replica: "e1"}, ErrDamaged, c.cure)
		})
	}
}

func TestMissingSnapshotIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, Options{Dir: dir, Replica: "e1", History: History{MaxBytes: 1}, snapshotEach: 500})
	x := running(t, s, world(1, 1), nil)
	for s.Stats().FirstIndex < 2 {
		must(t, x, &fsm.Cancel{Request: "none"}, fsm.Unknown)
	}
	closeStore(t, s)
	names, err := snapshotNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if err := os.Remove(filepath.Join(dir, snapshotsDir, n)); err != nil {
			t.Fatal(err)
		}
	}
	refusedOpen(t, Options{Dir: dir, Replica: "e1"}, ErrDamaged, "begins at", "backup")
}

// TestHalfMadeFirstStartIsFinished: wherever a first start was interrupted, the next one finishes it.
func TestHalfMadeFirstStartIsFinished(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, d *directory){
		"nothing but the lock": func(t *testing.T, d *directory) {
			if err := os.Remove(d.file(identityFile)); err != nil {
				t.Fatal(err)
			}
		},
		"identity half written": func(t *testing.T, d *directory) {
			if err := os.Rename(d.file(identityFile), d.file(identityFile)+temporarySuffix); err != nil {
				t.Fatal(err)
			}
		},
		"identity": func(*testing.T, *directory) {},
		"empty log": func(t *testing.T, d *directory) {
			log, err := d.openLog()
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		},
		"term but no entry": func(t *testing.T, d *directory) {
			log, err := d.openLog()
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(log.SetUint64([]byte("CurrentTerm"), 1), log.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"torn log": func(t *testing.T, d *directory) {
			if err := os.WriteFile(d.file(logDB), []byte("half a page"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, err := openDirectory(dir, "e1", "v1")
			if err != nil {
				t.Fatal(err)
			}
			prepare(t, d)
			if err := d.close(); err != nil {
				t.Fatal(err)
			}
			s := openAt(t, dir)
			must(t, running(t, s, world(1, 1), nil), admit("a"), fsm.Granted)
			closeStore(t, s)
			s = openAt(t, dir)
			s.View(func(m *fsm.Machine) {
				if len(m.Leases()) != 1 {
					t.Error("the lease is gone")
				}
			})
		})
	}
}

// TestInspectChangesNothing of a directory, not even of one that can't be written.
func TestInspectChangesNothing(t *testing.T) {
	dir, want := filled(t)
	state := func() map[string]string {
		out := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			info, _ := e.Info()
			out[path] = info.ModTime().Format(time.RFC3339Nano) + string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := state()
	m, info, err := Inspect(dir)
	if err != nil || m.Digest() != want {
		t.Fatal(err)
	}
	if info.Snapshot == "" || info.SnapshotIndex == 0 || info.Applied != 1 || info.Cluster == "" || info.Program != "v1" || info.Term == 0 {
		t.Errorf("%+v", info)
	}
	after := state()
	if len(before) != len(after) {
		t.Errorf("%d files, were %d", len(after), len(before))
	}
	for path, content := range before {
		if after[path] != content {
			t.Errorf("%s changed", path)
		}
	}
}

// TestInspectOfACopy: what a copy of a running replica's directory has is a state of its past.
func TestInspectOfACopy(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 1), nil)
	must(t, x, admit("a"), fsm.Granted)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	m, _, err := Inspect(copied)
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != digest(s) {
		t.Error("another state")
	}
}

func TestOptionsAreNeeded(t *testing.T) {
	for _, o := range []Options{{Replica: "e1"}, {Dir: t.TempDir()}} {
		if _, err := Open(within(t), o); err == nil {
			t.Errorf("opened with %+v", o)
		}
	}
}
