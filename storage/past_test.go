package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"iop/fsm"
)

// aPast makes a directory with a little history and returns it with the indexes of the grant of r-1 and the end.
// r-1 gets the one slot, r-2 waits and gets it when r-1 is done, r-3 gives up, r-4 waits when the session ends.
func aPast(t *testing.T) (dir string, granted, end uint64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "e1")
	s := openAt(t, dir)
	x := running(t, s, world(1, 1), func([]fsm.Effect) {})
	one := must(t, x, admit("r-1"), fsm.Granted)
	s.View(func(m *fsm.Machine) { granted = m.Index() })
	must(t, x, admit("r-2"), fsm.Queued)
	must(t, x, admit("r-3"), fsm.Queued)
	must(t, x, &fsm.Cancel{Request: "r-3"}, fsm.Removed)
	must(t, x, &fsm.Release{Lease: one.Grant.Lease, Reason: fsm.ReasonDone}, fsm.Returned)
	must(t, x, &fsm.Release{Lease: one.Grant.Lease, Reason: fsm.ReasonDone}, fsm.AlreadyReleased)
	must(t, x, &fsm.Admit{Request: "r-4", Model: "m", Fingerprint: fsm.Fingerprint{4}}, fsm.Queued)
	y, err := s.OpenSession(within(t), "e1", func([]fsm.Effect) {})
	if err != nil {
		t.Fatal(err)
	}
	must(t, y, &fsm.Admit{Request: "r-4b", Model: "m", Fingerprint: fsm.Fingerprint{4}}, fsm.Queued)
	s.View(func(m *fsm.Machine) { end = m.Index() })
	closeStore(t, s)
	return dir, granted, end
}

func pastOf(t *testing.T, dir string) *Past {
	t.Helper()
	p, err := OpenPast(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func told(t *testing.T, p *Past, s Subject) string {
	t.Helper()
	story, err := p.Story(within(t), s)
	if err != nil {
		t.Fatal(err)
	}
	if !story.Complete || story.From == 0 || story.To != p.End() {
		t.Errorf("%+v", story)
	}
	var b strings.Builder
	for _, l := range story.Lines {
		if l.Index == 0 || l.Time.Year() < 2020 {
			t.Errorf("%+v", l)
		}
		fmt.Fprintf(&b, "%s lease=%d: %s\n", l.Outcome, l.Lease, l.Text)
	}
	return b.String()
}

func TestStories(t *testing.T) {
	dir, _, _ := aPast(t)
	p := pastOf(t, dir)
	for _, c := range []struct {
		subject Subject
		want    []string // of each line
	}{
		{Subject{Request: "r-1"}, []string{
			"granted lease=1: admission for model m (normal, 0 input tokens): granted lease 1 of p0 (node n1, generation 1)",
			"returned lease=1: release of lease 1 (done): returned",
			"already_released lease=1: release of lease 1 (done): already_released",
		}},
		{Subject{Request: "r-2"}, []string{
			"queued lease=0: admission for model m (normal, 0 input tokens): queued at position 1, place 2",
			"granted lease=2: lease 2 of p0 granted to the waiter (node n1, generation 1) after ",
			"returned lease=2: lease 2 of p0 returned: session_ended; because of a new session of edge e1",
		}},
		{Subject{Lease: 2}, []string{"queued", "granted lease=2", "returned lease=2"}},
		{Subject{Request: "r-3"}, []string{"queued", "removed lease=0: cancel: removed"}},
		{Subject{Request: "r-4"}, []string{
			"queued", "detached lease=0: detached: its session ended; it keeps its place for reattach_window_ms; because of a new session of edge e1",
			"queued lease=0: taken over by request r-4b with the same fingerprint: ",
		}},
		{Subject{Request: "r-4b"}, []string{"it took over the place 4 of a detached waiter"}},
		{Subject{Request: "r-9"}, nil},
		{Subject{Lease: 99}, nil},
		{Subject{Node: "n1"}, []string{
			"applied", "registered lease=0: registration of node n1: registered, generation 1", "done lease=0: node n1 being ready, generation 1: done",
			"granted lease=1", "granted lease=2: r-2 was granted lease 2 of p0", "link_fenced", "returned lease=2",
		}},
	} {
		got := strings.Split(strings.TrimSpace(told(t, p, c.subject)), "\n")
		if len(c.want) == 0 && got[0] == "" {
			continue
		}
		ok := len(got) == len(c.want)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.Contains(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%+v:\n%s\nwant:\n%s", c.subject, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestTravel(t *testing.T) {
	dir, granted, end := aPast(t)
	p := pastOf(t, dir)
	m, err := p.At(within(t), granted)
	if err != nil || m.Index() != granted || len(m.Leases()) != 1 || m.Pending() != 0 {
		t.Fatalf("%v, %d", err, m.Index())
	}
	index, err := p.IndexAt(within(t), time.Unix(0, m.Wall()))
	if err != nil || index != granted {
		t.Errorf("at the wall stamp of %d there is %d, %v", granted, index, err)
	}
	if index, err = p.IndexAt(within(t), time.Now().Add(time.Hour)); err != nil || index != end {
		t.Errorf("in an hour: %d, %v, want %d", index, err, end)
	}
	if _, err = p.IndexAt(within(t), time.Unix(1, 0)); !errors.Is(err, ErrUnreachable) {
		t.Errorf("in 1970: %v", err)
	}
	if _, err = p.At(within(t), end+1); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), dir) {
		t.Errorf("in the future: %v", err)
	}
	lines, err := p.Diff(within(t), granted, end)
	text := strings.Join(lines, "\n")
	for _, want := range []string{"request r-1 ended", "request r-4b came: waiting at place 4", "1 leases granted, 2 returned", "link of generation 1 to edge e1 is gone"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: %q is not in\n%s", err, want, text)
		}
	}
	a, err := p.Check(within(t), 1, nil)
	if err != nil || a.To != end || a.Checked == 0 || len(a.Digest) != 64 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestLogIsFiltered(t *testing.T) {
	dir, granted, _ := aPast(t)
	p := pastOf(t, dir)
	for _, c := range []struct {
		filter Filter
		want   string // kinds
	}{
		{Filter{Request: "r-3"}, "admit cancel"},
		{Filter{Request: "r-2"}, "admit"},
		{Filter{Request: "r-2", Outcomes: true}, "admit release open_session"},
		{Filter{Lease: 1}, "release release"},
		{Filter{Lease: 1, Outcomes: true}, "admit release release"},
		{Filter{Kind: "cancel"}, "cancel"},
		{Filter{To: granted, Kind: "admit"}, "admit"},
		{Filter{From: granted + 1, Kind: "admit"}, "admit admit admit admit"},
		{Filter{Node: "n1"}, "register_node node_ready"},
		{Filter{Until: time.Unix(1, 0)}, ""},
	} {
		var got []string
		err := p.Log(within(t), c.filter, func(r *Record) error {
			got = append(got, r.Kind)
			return nil
		})
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, %v, want %s", c.filter, got, err, c.want)
		}
	}
}

// The directory is as before, to the byte.
func TestReadingChangesNothing(t *testing.T) {
	dir, _, end := aPast(t)
	before := content(t, dir)
	for _, path := range []string{filepath.Join(dir, logDB), filepath.Join(dir, identityFile), dir} {
		if err := os.Chmod(path, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	p := pastOf(t, dir)
	told(t, p, Subject{Request: "r-2"})
	if _, err := p.At(within(t), end); err != nil {
		t.Error(err)
	}
	if after := content(t, dir); after != before {
		t.Error("reading changed the directory")
	}
}

func content(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %q\n", path, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A running store tells its own history while it goes on; its directory is refused, with the way out.
func TestHistoryOfARunningStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e1")
	s := openAt(t, dir)
	x := running(t, s, world(1, 1), func([]fsm.Effect) {})
	must(t, x, admit("r-1"), fsm.Granted)
	must(t, x, admit("r-2"), fsm.Queued)
	if _, err := OpenPast(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
	var others sync.WaitGroup
	others.Go(func() {
		for i := range 200 {
			if _, err := x.Do(within(t), admit(fmt.Sprintf("other-%d", i))); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		p, err := s.Past()
		if err != nil {
			t.Fatal(err)
		}
		if got := told(t, p, Subject{Request: "r-2"}); !strings.HasPrefix(got, "queued") {
			t.Errorf("%s", got)
		}
	}
	others.Wait()
}

// The log stays together with a base for each of its entries, whatever is compacted; there are not too many.
func TestEveryEntryOfTheLogHasABase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e1")
	s := openWith(t, Options{
		Dir: dir, Replica: "e1", Version: "v1", Logger: testLogger(t), snapshotEach: 1 << 40, keepEntries: 400,
		History: History{MaxBytes: 1, MaxAge: time.Hour},
	})
	x := running(t, s, world(1, 1), func([]fsm.Effect) {})
	for i := range 1200 {
		must(t, x, admit(fmt.Sprintf("r-%d", i)), fsm.Granted, fsm.Queued)
		if i%25 == 24 {
			if err := s.log.snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	}
	st := s.Stats()
	closeStore(t, s)
	p := pastOf(t, dir)
	oldest, err := p.Oldest()
	if err != nil || st.FirstIndex == 1 || oldest+1 != p.Info().FirstIndex || len(p.Bases()) > snapshotsKept+basesMax || len(p.Bases()) < snapshotsKept+2 {
		t.Errorf("%v: log from %d, bases %v", err, p.Info().FirstIndex, p.Bases())
	}
	if last := p.Info().LastIndex; last-p.Info().FirstIndex > 800 {
		t.Errorf("%d entries are kept", last-p.Info().FirstIndex)
	}
	a, err := p.Check(within(t), 100, nil)
	if err != nil || a.Snapshots != len(p.Bases())-1 {
		t.Errorf("%+v, %v", a, err)
	}
	if got := told(t, p, Subject{Request: "r-3"}); !strings.HasPrefix(got, "waiting lease=0: waiting when the history begins: admitted at index") {
		t.Errorf("%s", got)
	}
}

func TestSurplus(t *testing.T) {
	var names []string
	for i := 20; i > 0; i-- {
		names = append(names, snapshotName(uint64(i*100), 1))
	}
	gone := surplus(names, 501)
	var kept []string
	for _, n := range names {
		if !slices.Contains(gone, n) {
			kept = append(kept, strings.TrimLeft(strings.TrimSuffix(n, "-1.snap"), "0"))
		}
	}
	if len(kept) != snapshotsKept+basesMax || kept[0] != "2000" || kept[2] != "1800" || kept[len(kept)-1] != "500" {
		t.Errorf("%v", kept)
	}
	if gone := surplus(names, 5000); len(gone) != 17 {
		t.Errorf("without a log, %d of 20 go", len(gone))
	}
}

// Our reading of raft-boltdb's records is raft-boltdb's.
func TestRawEntriesAreThoseOfTheStore(t *testing.T) {
	dir, _, end := aPast(t)
	log, err := readLog(filepath.Join(dir, logDB))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p := pastOf(t, dir)
	n := uint64(0)
	err = p.log.each(1, end, func(r *rawEntry) error {
		var want raft.Log
		if err := log.GetLog(r.index, &want); err != nil {
			return err
		}
		if got := r.log; got.Index != want.Index || got.Term != want.Term || got.Type != want.Type || string(got.Data) != string(want.Data) ||
			string(got.Extensions) != string(want.Extensions) || !got.AppendedAt.Equal(want.AppendedAt) {
			t.Errorf("entry %d: %+v, want %+v", r.index, got, want)
		}
		n++
		return nil
	})
	if err != nil || n != end {
		t.Errorf("%d entries, %v", n, err)
	}
}

// The entry that names the members has no time; it made the oldest part of the log look ancient after a restart, which
// was then removed long before its day was over.
func TestFirstEntryIsNotAncient(t *testing.T) {
	dir, _, _ := aPast(t)
	s := openAt(t, dir)
	s.guard.history.least = 1
	if keep := s.guard.history.keepFrom(s.Stats().LastIndex); keep != 1 {
		t.Errorf("the log would be cut up to %d", keep)
	}
}

// As long as no snapshot is older than what has to stay, nothing is cut: the entries would have no base.
func TestNothingIsCutWithoutABase(t *testing.T) {
	dir, _, _ := aPast(t)
	s := openAt(t, dir)
	if at, err := s.snapStore().cutAt(5); err != nil || at != 1 {
		t.Errorf("without a snapshot: %d, %v", at, err)
	}
	if err := s.log.snapshot(); err != nil {
		t.Fatal(err)
	}
	list, err := s.snapStore().List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	taken := list[0].Index
	for keep, want := range map[uint64]uint64{taken: 1, taken + 1: taken + 1, taken + 9: taken + 1} {
		if at, err := s.snapStore().cutAt(keep); err != nil || at != want {
			t.Errorf("to keep from %d: cut at %d, %v, want %d", keep, at, err, want)
		}
	}
}

// TestAWaiterOfTheSameStep: who is granted a slot by the command that brought him has not waited.
func TestAWaiterOfTheSameStep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e1")
	s := openAt(t, dir)
	x := running(t, s, world(1, 1), func([]fsm.Effect) {})
	time.Sleep(20 * time.Millisecond)
	if _, err := x.Do(within(t), submit("resp-1")); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if got := told(t, pastOf(t, dir), Subject{Request: "resp-1"}); !strings.Contains(got, "granted to the waiter (node n1, generation 1) after 0s; ") {
		t.Errorf("%s", got)
	}
}
