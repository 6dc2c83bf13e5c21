package storage

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/fsm"
)

var allFlips = flag.Bool("flips", false, "flip a bit in every byte of a directory's files, not only in a sample")

// copied returns a copy of a directory of the test, to be damaged.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// wantRefused checks that neither Open nor Inspect make do with a directory, and that the error is one an operator can
// act on: the file and the way out.
func wantRefused(t *testing.T, dir, file string) {
	t.Helper()
	_, _, inspected := Inspect(dir)
	s, opened := Open(within(t), Options{Dir: dir, Replica: "e1"})
	if opened == nil {
		closeStore(t, s)
	}
	for what, err := range map[string]error{"inspect": inspected, "open": opened} {
		switch {
		case err == nil:
			t.Errorf("%s: nobody noticed", what)
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrWrongReplica):
			t.Errorf("%s: %v", what, err)
		case !strings.Contains(err.Error(), file):
			t.Errorf("%s: %v does not name %s", what, err, file)
		case errors.Is(err, ErrDamaged) && !strings.Contains(err.Error(), "restore") && !strings.Contains(err.Error(), "finished"):
			t.Errorf("%s: %v has no way out", what, err)
		}
	}
}

// TestDamagedFilesAreRefused: whatever is cut off, zeroed or overwritten, nobody starts from less than there was.
func TestDamagedFilesAreRefused(t *testing.T) {
	good, _ := filled(t)
	snapshot := filepath.Join(snapshotsDir, filepath.Base(newestSnapshot(t, good)))
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	for name, c := range map[string]struct {
		file string
		what func([]byte) []byte
	}{
		"log emptied":               {logDB, cut(0)},
		"log of half a page":        {logDB, cut(2048)},
		"log of one page":           {logDB, cut(4096)},
		"log of two pages":          {logDB, cut(8192)},
		"log of five pages":         {logDB, cut(5 * 4096)},
		"log zeroed":                {logDB, func(b []byte) []byte { return make([]byte, len(b)) }},
		"log's first page zeroed":   {logDB, func(b []byte) []byte { clear(b[:4096]); return b }},
		"log's second page zeroed":  {logDB, func(b []byte) []byte { clear(b[4096:8192]); return b }},
		"log's data pages zeroed":   {logDB, func(b []byte) []byte { clear(b[8192:]); return b }},
		"log overwritten":           {logDB, func(b []byte) []byte { return bytes.Repeat([]byte("junk"), len(b)/4) }},
		"log's pages exchanged":     {logDB, func(b []byte) []byte { return append(append(bytes.Clone(b[4096:8192]), b[:4096]...), b[8192:]...) }},
		"snapshot emptied":          {snapshot, cut(0)},
		"snapshot cut":              {snapshot, cut(100)},
		"snapshot zeroed":           {snapshot, func(b []byte) []byte { return make([]byte, len(b)) }},
		"snapshot with more behind": {snapshot, func(b []byte) []byte { return append(b, 0) }},
		"identity emptied":          {identityFile, cut(0)},
		"identity cut":              {identityFile, cut(30)},
		"identity zeroed":           {identityFile, func(b []byte) []byte { return make([]byte, len(b)) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, good)
			path := filepath.Join(dir, c.file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.what(b), 0o600); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, dir, filepath.Base(c.file))
		})
	}
}

// TestFlippedBits: a single flipped bit in any file is refused, or makes no difference because nothing is kept there.
func TestFlippedBits(t *testing.T) {
	good, want := filled(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	files := []string{identityFile, logDB, filepath.Join(snapshotsDir, filepath.Base(newestSnapshot(t, good)))}
	dir := copied(t, good)
	for _, name := range files {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		refused, tried := 0, 0
		step := 1
		if used := len(bytes.TrimRight(b, "\x00")); !*allFlips {
			step = max(1, used/700)
		}
		for at := 0; at < len(b); at += step {
			i := min(at+random.IntN(step), len(b)-1)
			if b[i] == 0 && allZero(b, i) { // pages that were never written
				continue
			}
			bit := byte(1) << random.IntN(8)
			put := func(v byte) {
				if _, err := f.WriteAt([]byte{v}, int64(i)); err != nil {
					t.Fatal(err)
				}
			}
			put(b[i] ^ bit)
			tried++
			m, _, err := Inspect(dir)
			switch {
			case err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrNotOurs):
				t.Errorf("%s: bit %#x of byte %d: %v", name, bit, i, err)
			case err != nil:
				refused++
			case m.Digest() != want:
				t.Errorf("%s: bit %#x of byte %d flipped: nobody noticed, and the state is another", name, bit, i)
			}
			put(b[i])
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d flips, %d refused, the others changed nothing", name, tried, refused)
		if refused == 0 {
			t.Errorf("%s: no flip was noticed", name)
		}
	}
	if s := openAt(t, dir); digest(s) != want {
		t.Error("the test damaged its directory")
	}
}

func allZero(b []byte, at int) bool {
	page := b[at/4096*4096 : min(at/4096*4096+4096, len(b))]
	return len(bytes.Trim(page, "\x00")) == 0
}

// TestExchangedFilesAreRefused: a file of another directory is none of ours, even if all in it is well.
func TestExchangedFilesAreRefused(t *testing.T) {
	ours, _ := filled(t)
	theirs, _ := filled(t)
	bare := func() string { // without any snapshot that would name its cluster
		dir := t.TempDir()
		s := openAt(t, dir)
		must(t, running(t, s, world(1, 1), nil), admit("a"), fsm.Granted)
		closeStore(t, s)
		return dir
	}
	bareOurs, bareTheirs := bare(), bare()
	unfinished := t.TempDir()
	d, err := openDirectory(unfinished, "e1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	snapshot := func(dir string) string { return filepath.Join(snapshotsDir, filepath.Base(newestSnapshot(t, dir))) }
	for name, c := range map[string]struct{ to, from, file, as, names string }{
		"log":                            {ours, theirs, logDB, logDB, logDB},
		"log, no snapshot":               {bareOurs, bareTheirs, logDB, logDB, logDB},
		"identity":                       {ours, theirs, identityFile, identityFile, identityFile},
		"identity, no snapshot":          {bareOurs, bareTheirs, identityFile, identityFile, identityFile},
		"identity of an unfinished one":  {ours, unfinished, identityFile, identityFile, "first start"},
		"the same, no snapshot":          {bareOurs, unfinished, identityFile, identityFile, "first start"},
		"snapshot":                       {ours, theirs, snapshot(theirs), snapshot(ours), ".snap"},
		"snapshot under a newer name":    {ours, ours, snapshot(ours), filepath.Join(snapshotsDir, snapshotName(99, 2)), snapshotName(99, 2)},
		"log before that of a snapshot":  {ours, bareOurs, logDB, logDB, logDB},
		"snapshot of a directory behind": {bareOurs, ours, snapshot(ours), snapshot(ours), ".snap"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, c.to)
			b, err := os.ReadFile(filepath.Join(c.from, c.file))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.as), b, 0o600); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(filepath.Join(dir, logDB))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(within(t), Options{Dir: dir, Replica: "e1"})
			if err == nil {
				closeStore(t, s)
				t.Fatal("nobody noticed")
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.names) || !strings.Contains(err.Error(), "restore") {
				t.Error(err)
			}
			if after, err := os.ReadFile(filepath.Join(dir, logDB)); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the log was changed: %v", err)
			}
		})
	}
}

// TestOlderLogIsRefused: the log of an older copy of the same directory, beside a snapshot that is newer.
func TestOlderLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 1), nil)
	must(t, x, admit("a"), fsm.Granted)
	closeStore(t, s)
	old := copied(t, dir)
	s = openAt(t, dir)
	if _, err := s.OpenSession(within(t), "e1", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.log.snapshot(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	b, err := os.ReadFile(filepath.Join(old, logDB))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, logDB), b, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, logDB)
}

// TestUnsealedDirectoryIsRead: a directory of format 1 has no checksums; it is opened, and goes on without.
func TestUnsealedDirectoryIsRead(t *testing.T) {
	dir := t.TempDir()
	d, err := openDirectory(dir, "e1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	d.identity.Format = 1
	if err := errors.Join(d.identity.write(dir), d.close()); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, dir)
	must(t, running(t, s, world(1, 1), nil), admit("a"), fsm.Granted)
	want := digest(s)
	closeStore(t, s)
	if m, info, err := Inspect(dir); err != nil || m.Digest() != want || info.Format != 1 {
		t.Fatal(info, err)
	}
	if s = openAt(t, dir); digest(s) != want {
		t.Error("another state")
	}
}
