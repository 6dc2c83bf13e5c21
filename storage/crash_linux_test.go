package storage

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"iop/fsm"
)

var (
	diskSeed   = flag.Uint64("disk.seed", 0, "seed of what a crash leaves of un-synced sectors; 0 = another one each time")
	diskImages = flag.Int("disk.images", 6, "torn disks for each call of a process")
	diskFaults = flag.Int("disk.faults", 1, "every n-th call of a process is made to fail")
)

// fastDir is a directory in memory if there is one: the disk is simulated, and syncs of the real one only cost time.
func fastDir(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "iop-disk-") //nolint:usetesting // t.TempDir does not let the file system be chosen
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// recorded is what a process did with its disk, and said.
type recorded struct {
	root    string
	calls   []*call
	digests map[uint64]string // of the state at an index, in hex
}

func recordLives(t *testing.T) *recorded {
	t.Helper()
	r := &recorded{root: fastDir(t), digests: map[uint64]string{}}
	supervise(t, "lives", r.root, func(c *call) unix.Errno {
		r.calls = append(r.calls, c)
		if index, digest, ok := acknowledged(c); ok {
			r.digests[index] = digest
		}
		if c.kind == callLine && (strings.HasPrefix(c.line, "error") || strings.HasPrefix(c.line, "snapshot failed")) {
			t.Error(c.line)
		}
		return 0
	}, nil)
	if len(r.digests) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	return r
}

// acknowledged reads a line that says so.
func acknowledged(c *call) (index uint64, digest string, ok bool) {
	if c.kind != callLine {
		return 0, "", false
	}
	n, err := fmt.Sscanf(c.line, "ack %d %s", &index, &digest)
	return index, digest, n == 2 && err == nil
}

// TestCrashAtEveryCall stops a process before each call by which it changes its disk: first start, work, snapshots,
// compaction, orderly stop, second start. Of what was not synced, all, nothing, each choice of few writes, and torn
// sectors get to the disk. Each time the directory opens by itself, with all that was acknowledged before and nothing
// that was not proposed, and goes on working.
func TestCrashAtEveryCall(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	seed := *diskSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	random := torn{rand.New(rand.NewPCG(seed, 0))}
	r := recordLives(t)
	x := &crashes{recorded: r, t: t, disk: newDisk(r.root), seen: map[string]bool{}, into: fastDir(t)}
	begin := time.Now()
	for i, c := range r.calls {
		x.at = i
		if index, _, ok := acknowledged(c); ok {
			x.acknowledged = index
		}
		if c.kind == callLine {
			x.opened = x.opened || c.line == "open"
			continue
		}
		x.verify("nothing more", allOrNothing(false))
		x.verify("all", allOrNothing(true))
		if n := x.disk.pending(); n > 0 && n <= 4 {
			for bits := range uint(1) << n {
				x.verify("some writes", &subset{bits: bits, renames: i%2 == 0})
			}
		}
		for range *diskImages {
			x.verify("torn", random)
		}
		if err := x.disk.do(c); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("before call %d: %v", i, c)
		}
	}
	x.acknowledged = 0
	for index := range r.digests {
		x.acknowledged = max(x.acknowledged, index)
	}
	x.verify("nothing more", allOrNothing(false))
	t.Logf("%d calls, %d different disks, %d of them before the first start was done; %v", len(r.calls), len(x.seen), x.fresh, time.Since(begin).Round(time.Millisecond))
	if x.fresh == 0 || len(x.seen) < len(r.calls)/2 {
		t.Error("too few disks for a test")
	}
}

// crashes are the disks that a process could leave behind.
type crashes struct {
	*recorded
	t            *testing.T
	disk         *disk
	into         string
	at           int
	acknowledged uint64 // index
	opened       bool   // it is told that the directory is open
	seen         map[string]bool
	fresh        int
}

func (x *crashes) verify(what string, l luck) {
	x.t.Helper()
	left := x.disk.crash(l)
	key := fmt.Sprintf("%x %d %v", left.sum(), x.acknowledged, x.opened)
	if x.seen[key] {
		return
	}
	x.seen[key] = true
	root := filepath.Join(x.into, fmt.Sprint(len(x.seen)))
	if err := os.Mkdir(root, 0o700); err != nil {
		x.t.Fatal(err)
	}
	left.write(x.t, root)
	if err := x.look(filepath.Join(root, "data")); err != nil {
		x.t.Errorf("call %d, %s: %v", x.at, what, err)
		return // it stays for a look
	}
	if err := os.RemoveAll(root); err != nil {
		x.t.Fatal(err)
	}
}

// look inspects and opens what a crash left.
func (x *crashes) look(dir string) error {
	m, _, err := Inspect(dir)
	switch {
	case errors.Is(err, ErrNotOurs) && !x.opened:
		x.fresh++
		m = fsm.New()
	case err != nil:
		return err
	default:
		if err := x.expected(m); err != nil {
			return err
		}
	}
	s, err := Open(within(x.t), diskOptions(dir))
	if err != nil {
		return err
	}
	defer closeStore(x.t, s)
	if digest(s) != m.Digest() {
		return errors.New("it opens with another state than it is inspected with")
	}
	checked(x.t, s)
	s.View(func(m *fsm.Machine) { _, err = compareVault(s.vault, m) })
	if err != nil {
		return err
	}
	_, err = s.OpenSession(within(x.t), "after", nil)
	return err
}

// expected compares a state with those that the process said it was in.
func (x *crashes) expected(m *fsm.Machine) error {
	if m.Index() < x.acknowledged {
		return fmt.Errorf("it ends at entry %d, acknowledged was %d", m.Index(), x.acknowledged)
	}
	want, ok := x.digests[m.Index()]
	if m.Index() == 0 && !ok {
		want = fmt.Sprintf("%x", fsm.New().Digest())
	} else if !ok {
		return fmt.Errorf("it ends at entry %d, which the process knows nothing of", m.Index())
	}
	if got := fmt.Sprintf("%x", m.Digest()); got != want {
		return fmt.Errorf("the state at entry %d is not what it was", m.Index())
	}
	return nil
}

// TestEveryCallFails has one call after the other fail, for input and output errors and for a full disk. Whatever fails,
// the store says so with file and cure or does without, no goroutine stays behind, and the next start has everything
// that was acknowledged.
func TestEveryCallFails(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	for name, f := range map[string]*faults{
		"error": {errno: unix.EIO}, "torn write": {errno: unix.EIO, torn: true}, "full disk": {errno: unix.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.t, f.first = t, 1+rand.IntN(*diskFaults)
			supervise(t, "faults", fastDir(t), f.see, func(s *supervisor) {
				f.supervisor, f.failing = s, f.first
				s.goOn(true)
			})
			t.Logf("%d calls failed: %v", len(f.broken), f.counts)
			if len(f.broken) < 20 {
				t.Error("too few for a test")
			}
		})
	}
}

// faults makes the n-th call of each life fail.
type faults struct {
	*supervisor
	t     *testing.T
	errno unix.Errno
	torn  bool // only writes fail, after half of the bytes were written
	first int

	failing int // which call is to fail in this life
	count   int // of calls in this life
	armed   bool
	dir     string
	what    *call // that failed
	index   uint64
	digests map[uint64]string

	broken []string
	counts map[string]int
}

func (f *faults) see(c *call) unix.Errno {
	if c.kind == callLine {
		f.line(c)
		return 0
	}
	switch {
	case !f.armed:
		return 0
	case f.torn && c.kind != callWrite:
		return 0
	case f.errno == unix.ENOSPC && (c.kind == callRemove || c.kind == callSync && filepath.Ext(c.path) == ""): // they need no space
		return 0
	}
	if f.count++; f.count != f.failing {
		return 0
	}
	f.armed, f.what = false, c
	if f.torn {
		f.tear(c)
	}
	return f.errno
}

// tear writes half of what a write should; of the log, whole sectors.
func (f *faults) tear(c *call) {
	half := c.data[:len(c.data)/2]
	if filepath.Base(c.path) == logDB {
		half = half[:len(half)/sector*sector]
	}
	file, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		f.t.Error(err)
		return
	}
	at := c.offset
	if at < 0 { // where the file ends
		info, err := file.Stat()
		if err != nil {
			f.t.Error(err)
			return
		}
		at = info.Size()
	}
	_, err = file.WriteAt(half, at)
	if err := errors.Join(err, file.Close()); err != nil {
		f.t.Error(err)
	}
}

func (f *faults) line(c *call) {
	word, rest, _ := strings.Cut(c.line, " ")
	switch word {
	case "begin":
		f.armed, f.count, f.what, f.dir, f.index, f.digests = true, 0, nil, rest, 0, map[uint64]string{}
	case "ack":
		if index, digest, ok := acknowledged(c); ok && f.dir != "" {
			f.index, f.digests[index] = index, digest
		}
	case "life":
		f.armed = false
		f.lived(rest)
	case "state":
		f.state(rest)
		f.dir = "" // what is acknowledged from here on belongs to the next life
	case "wrong":
		f.t.Errorf("%v failed with %v: %s", f.what, f.errno, rest)
	case "end":
		f.goOn(f.what != nil)
		f.failing += *diskFaults
	}
}

// lived judges how a life ended in which a call failed.
func (f *faults) lived(told string) {
	if f.what == nil {
		if told != "<nil>" {
			f.t.Errorf("nothing failed, and it ended with %s", told)
		}
		return
	}
	name := filepath.Base(f.what.path)
	if strings.HasSuffix(strings.TrimSuffix(name, temporarySuffix), snapshotSuffix) {
		name = "*" + snapshotSuffix
	}
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.counts[fmt.Sprint(f.what.kind, " ", name)]++
	f.broken = append(f.broken, f.what.String())
	if told == "<nil>" {
		return
	}
	if !strings.Contains(told, strings.TrimSuffix(f.dir, "/data")) && !strings.Contains(told, name) {
		f.t.Errorf("%v failed: %q does not name the file", f.what, told)
	}
	for _, cure := range []string{"start again", "restore", "that can be written"} {
		if strings.Contains(told, cure) {
			return
		}
	}
	f.t.Errorf("%v failed: %q has no cure", f.what, told)
}

// state compares what the next start found with what was acknowledged.
func (f *faults) state(line string) {
	var index uint64
	var digest string
	if _, err := fmt.Sscanf(line, "%d %s", &index, &digest); err != nil {
		f.t.Error(err)
	}
	if index < f.index {
		f.t.Errorf("%v failed: entry %d was acknowledged, the next start ends at %d", f.what, f.index, index)
	}
	if want, ok := f.digests[index]; ok && want != digest {
		f.t.Errorf("%v failed: the next start has another state at entry %d", f.what, index)
	}
}
