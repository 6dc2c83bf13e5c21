package storage

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"iop/fsm"
	"iop/proto/recordpb"
)

// everyRow has a row of each kind with every field set.
func everyRow() *fsm.Image {
	outcome := fsm.Outcome{
		Code: fsm.Granted, Refusal: fsm.RefusalConflict,
		Grant: fsm.Grant{
			Lease: 9, Request: "r\xfe", Model: "a", Class: fsm.ClassLong, Provider: "p1", Node: "n1", Generation: 3, Served: "s1",
		},
		Position: 4, Enqueue: 5, Session: 6, Generation: 7, Revision: 8, Counted: []fsm.LeaseID{1, 2}, Count: -1,
	}
	return &fsm.Image{
		Index: 100, Term: 4, Now: 123456789, Wall: 1764428400000000000, Revision: 3,
		Document: []byte("document"), Config: everyConfig().Config, LastSession: 9, NextLease: 10, NextEnqueue: 11, Granted: 12, Returned: 2,
		Offers: []fsm.OfferRow{{Edge: "edge-1", Offer: "0badcafe"}},
		Sessions: []fsm.SessionRow{
			{
				ID: 50, Edge: "edge-1", Nonce: 1 << 63, OpenedAt: 1, OpenedWall: 2, GraceUntil: 3, NextSeq: 9, AckBelow: 8,
				Batches: []fsm.BatchRow{{Seq: 8, Sum: 1 << 62, Outcomes: []fsm.Outcome{outcome, {}}}},
			},
			{ID: 60, Edge: "edge-2"},
		},
		Nodes: []fsm.NodeRow{{
			ID: "n1", Generation: 3, Instance: 1 << 63, Draining: true, Removed: true,
			Links: []fsm.LinkRow{{Generation: 3, Edge: "edge-1", Session: 50, State: fsm.LinkFenced, FenceUntil: 77}},
		}},
		Providers: []fsm.ProviderRow{{
			Config: everyConfig().Config.Providers[0], Removed: true, Draining: true, Health: fsm.Degraded, Cause: "out of \xff",
			Granted: 5, Returned: 4,
		}},
		Models: []fsm.ModelRow{{ID: "a", Cursor: "p1"}},
		Requests: []fsm.RequestRow{{
			ID: "r1", Fingerprint: fsm.Fingerprint{15: 1}, Model: "a", Class: fsm.ClassLong, InputTokens: 1, Needs: 2, MaxWait: 3,
			Session: 50, State: fsm.StateFencing, Enqueue: 4, EnqueuedAt: 5, EnqueuedWall: 6, EnqueuedIndex: 7,
			DetachedUntil: 8, Excluded: []fsm.ProviderID{"p2", "p3"}, Lease: 9, Provider: "p1", Served: "s1", Generation: 3,
			GrantedAt: 10, GrantedWall: 11, GrantedIndex: 12, Edge: "edge-1", Node: "n1",
		}, {ID: "r2"}},
	}
}

// everyLaterRow has what later versions added, too.
func everyLaterRow() *fsm.Image {
	img := everyRow()
	img.Level, img.Checked = 2, 90
	img.Edges = []fsm.EdgeRow{{Edge: "edge-1", Address: "edge-1.example:8081"}}
	return img
}

// everyJoinedRow has what joining and direct requests added, too.
func everyJoinedRow() *fsm.Image {
	img := everyLaterRow()
	img.Nodes = append(img.Nodes, fsm.NodeRow{ID: "n2", Token: fsm.TokenHash{5, 31: 6}})
	img.Requests = append(img.Requests, fsm.RequestRow{ID: "r3", Direct: true})
	img.Joins = []fsm.JoinRow{
		{Token: fsm.TokenHash{1, 31: 2}, Node: "n2", Until: 3, Forget: 4, NodeToken: fsm.TokenHash{5, 31: 6}},
		{Token: fsm.TokenHash{7}, Node: "n1", Until: 8, Forget: 9},
	}
	return img
}

// everyMeteredRow has what principals and the ledger added, too.
func everyMeteredRow() *fsm.Image {
	img := everyJoinedRow()
	img.Level, img.LastTurn, img.Metered = 3, 7, 12
	img.Config.Pool.Fair = true
	img.Config.Principals = everyPrincipal()
	img.Requests = append(img.Requests, fsm.RequestRow{ID: "r4", Principal: "ann", Token: "ann-1", Metered: true})
	img.Principals = []fsm.PrincipalRow{{ID: "ann", Turn: 6}, {ID: "bob", Turn: 7}}
	img.Usage = []fsm.UsageRow{
		{Requests: 2},
		{
			UsageKey: fsm.UsageKey{Day: 20421, Principal: "ann", Token: "ann-1", Model: "a", Provider: "p1"},
			Requests: 10, Aborted: 3, Untold: 2, Prompt: 1 << 40, Completion: 5, Cached: 4, Reasoning: 1,
		},
	}
	return img
}

// everyStoredRow has what stored responses added, too.
func everyStoredRow() *fsm.Image {
	img := everyMeteredRow()
	img.Level, img.LastOrder = 4, 5
	img.Config.Pool.ResponsesBytes, img.Config.Pool.ResponsesRetention = 1<<40, 3600*fsm.Second
	img.Responses = []fsm.ResponseRow{
		{ID: "resp_1", Principal: "ann", Background: true, Status: fsm.ResponseFailed, Cause: fsm.RefusalLost, Attempt: 17, Lost: 16, Events: 300, Bytes: 1 << 40, Object: 30, Since: 7, Wall: 8, Order: 4},
		{ID: "resp_2", Order: 5},
	}
	return img
}

// everyApartRow has what links of edges that may live without a session added, too.
func everyApartRow() *fsm.Image {
	img := everyStoredRow()
	img.Level = 5
	img.Nodes = append(img.Nodes, fsm.NodeRow{
		ID: "n3", Generation: 1, Links: []fsm.LinkRow{{Generation: 1, Edge: "edge-1", State: fsm.LinkFenced, FenceUntil: 77, Apart: true}},
	})
	return img
}

// TestEveryFieldIsSet fails when a field is added to a row or a command that the tests here, and so perhaps the codec,
// know nothing of.
func TestEveryFieldIsSet(t *testing.T) {
	img := everyApartRow()
	img.Nodes[0].Links[0].Apart = true
	img.Nodes[0].Token, img.Requests[0].Direct = img.Nodes[1].Token, true
	img.Requests[0].Principal, img.Requests[0].Token, img.Requests[0].Metered = "ann", "ann-1", true
	img.Usage[0] = img.Usage[1]
	everyFieldSet(t, "Image", reflect.ValueOf(img).Elem())
	set := map[reflect.Type]fsm.Command{}
	for _, c := range everyCommand() {
		kind := reflect.TypeOf(c)
		if set[kind] == nil || len(encode(entryOf(c))) > len(encode(entryOf(set[kind]))) {
			set[kind] = c
		}
	}
	for kind, c := range set {
		everyFieldSet(t, kind.String(), reflect.ValueOf(c).Elem())
	}
}

func everyFieldSet(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	if v.IsZero() {
		t.Errorf("%s is not set: set it in the test, and see that record.proto and the codec have it", path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			everyFieldSet(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct {
			everyFieldSet(t, path+"[0]", v.Index(0))
		}
	}
}

func TestGoldenRows(t *testing.T) {
	n := map[string]int{}
	eachRow(everyApartRow(), func(r *recordpb.Row) {
		m := r.ProtoReflect()
		kind := string(m.WhichOneof(m.Descriptor().Oneofs().ByName("kind")).Name())
		n[kind]++
		name := kind + "-" + strconv.Itoa(n[kind])
		if kind == "config" {
			name = "config-3" // 1 is that of before principals, 2 that of before responses
		}
		golden(t, "v1-row-"+name, marshal(r), &recordpb.Row{})
	})
	eachRow(everyRow(), func(r *recordpb.Row) {
		if r.GetConfig() != nil {
			golden(t, "v1-row-config-1", marshal(r), &recordpb.Row{})
		}
	})
	eachRow(everyMeteredRow(), func(r *recordpb.Row) {
		if r.GetConfig() != nil {
			golden(t, "v1-row-config-2", marshal(r), &recordpb.Row{})
		}
	})
	if kinds := (&recordpb.Row{}).ProtoReflect().Descriptor().Fields().Len() - 1; len(n) != kinds {
		t.Errorf("%d kinds of row held, record.proto has %d and the end", len(n), kinds)
	}
}

// TestGoldenSnapshot reads a whole state as each version wrote it, and writes the same bytes.
func TestGoldenSnapshot(t *testing.T) {
	t.Run("first", func(t *testing.T) { goldenSnapshot(t, "v1-snapshot.bin", everyRow()) })
	t.Run("level2", func(t *testing.T) { goldenSnapshot(t, "v1-snapshot-level2.bin", everyLaterRow()) })
	t.Run("joined", func(t *testing.T) { goldenSnapshot(t, "v1-snapshot-joined.bin", everyJoinedRow()) })
	t.Run("metered", func(t *testing.T) { goldenSnapshot(t, "v1-snapshot-metered.bin", everyMeteredRow()) })
	t.Run("stored", func(t *testing.T) { goldenSnapshot(t, "v1-snapshot-stored.bin", everyStoredRow()) })
	t.Run("apart", func(t *testing.T) { goldenSnapshot(t, "v1-snapshot-apart.bin", everyApartRow()) })
}

func goldenSnapshot(t *testing.T, name string, state *fsm.Image) {
	path := filepath.Join("testdata", "golden", name)
	var b bytes.Buffer
	if err := writeImage(&b, "cluster-id", state); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil && *update {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cluster, img, err := decodeImage(old)
	if err != nil || cluster != "cluster-id" {
		t.Fatal(cluster, err)
	}
	if diff := cmp.Diff(state, img); diff != "" {
		t.Errorf("read another state:\n%s", diff)
	}
	if !bytes.Equal(b.Bytes(), old) {
		t.Error("the bytes of a snapshot changed")
	}
}

func FuzzSnapshot(f *testing.F) {
	var b bytes.Buffer
	if err := writeImage(&b, "c", everyApartRow()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[:b.Len()-sha256.Size])
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		cluster, img, err := decodeImage(append(bytes.Clone(body), sum[:]...))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := writeImage(&again, cluster, img); err != nil {
			t.Fatal(err)
		}
		if _, second, err := decodeImage(again.Bytes()); err != nil || !cmp.Equal(img, second) {
			t.Fatalf("%v: %s", err, cmp.Diff(img, second))
		}
	})
}

func FuzzSnapshotHead(f *testing.F) {
	f.Add([]byte(snapshotMagic + "\x00\x00\x00\x00    "))
	f.Fuzz(func(t *testing.T, b []byte) {
		if meta, n, err := readSnapshotHead(bytes.NewReader(b)); err == nil && (meta == nil || n > int64(len(b))) {
			t.Fatalf("head of %d bytes out of %d", n, len(b))
		}
	})
}

// filled is a directory with a snapshot and some log behind it.
func filled(t *testing.T) (dir string, want [32]byte) {
	t.Helper()
	dir = t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(2, 2), nil)
	for i := range 10 {
		must(t, x, admit("r"+strconv.Itoa(i)), fsm.Granted, fsm.Queued)
	}
	if err := s.log.snapshot(); err != nil {
		t.Fatal(err)
	}
	must(t, x, &fsm.Cancel{Request: "r9"}, fsm.Removed)
	want = digest(s)
	closeStore(t, s)
	return dir, want
}

func newestSnapshot(t *testing.T, dir string) string {
	t.Helper()
	names, err := snapshotNames(dir)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return filepath.Join(dir, snapshotsDir, names[0])
}

func TestSnapshotAndTailGiveTheSameState(t *testing.T) {
	dir, want := filled(t)
	s := openAt(t, dir)
	if digest(s) != want {
		t.Error("another state")
	}
	if s.Stats().SnapshotIndex == 0 {
		t.Error("it does not come from the snapshot")
	}
	checked(t, s)
}

// TestTornSnapshotIsRefused: cut off or changed anywhere, it is refused with its name and the way out; and the way out
// works as long as the log reaches back.
func TestTornSnapshotIsRefused(t *testing.T) {
	dir, want := filled(t)
	path := newestSnapshot(t, dir)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(within(t), Options{Dir: dir, Replica: "e1"})
		if err == nil {
			closeStore(t, s)
			t.Fatalf("%s: opened", what)
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "out of the way") {
			t.Fatalf("%s: %v", what, err)
		}
		if _, _, err := Inspect(dir); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: inspect: %v", what, err)
		}
	}
	for _, n := range []int{0, 4, 20, len(good) / 2, len(good) - 40, len(good) - 1} {
		refused("cut at "+strconv.Itoa(n), good[:n])
		bad := bytes.Clone(good)
		bad[n] ^= 1
		refused("changed at "+strconv.Itoa(n), bad)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if s := openAt(t, dir); digest(s) != want {
		t.Error("replaying the whole log gives another state")
	}
}

func TestSnapshotOfAnotherClusterIsRefused(t *testing.T) {
	dir, _ := filled(t)
	other, _ := filled(t)
	content, err := os.ReadFile(newestSnapshot(t, other))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(newestSnapshot(t, dir), content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(within(t), Options{Dir: dir, Replica: "e1"})
	if err == nil {
		closeStore(t, s)
		t.Fatal("opened")
	}
	if _, _, err := Inspect(dir); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Error(err)
	}
}

// TestSnapshotsAreTakenAndTheLogIsCut: three snapshots stay and the bases of what is kept, the log keeps a tail, and the state is the same after it.
func TestSnapshotsAreTakenAndTheLogIsCut(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, Options{Dir: dir, Replica: "e1", History: History{MaxBytes: 1}, snapshotEach: 700})
	x := running(t, s, world(1, 1), nil)
	deadline := time.Now().Add(long)
	for i := 0; s.Stats().Snapshots < 5 || s.Stats().FirstIndex < 2; i++ {
		g := must(t, x, admit("r"+strconv.Itoa(i)), fsm.Granted)
		must(t, x, &fsm.Release{Lease: g.Grant.Lease}, fsm.Returned)
		if time.Now().After(deadline.Add(long)) {
			t.Fatalf("%+v", s.Stats())
		}
	}
	names, err := snapshotNames(dir)
	if err != nil || len(names) < snapshotsKept || len(names) > snapshotsKept+basesMax {
		t.Errorf("snapshots: %v %v", names, err)
	}
	st := s.Stats()
	if kept := st.LastIndex - st.FirstIndex; kept < historyEntriesMin || kept > historyEntriesMin+2*700+4*markEach {
		t.Errorf("%d entries kept: %+v", kept, st)
	}
	want := digest(s)
	closeStore(t, s)
	if s = openAt(t, dir); digest(s) != want {
		t.Error("another state")
	}
	checked(t, s)
}

// TestCloseTakesASnapshot if many entries came since the last.
func TestCloseTakesASnapshot(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 1), nil)
	for s.Stats().LastIndex < closeEntries+2 {
		must(t, x, &fsm.Cancel{Request: "none"}, fsm.Unknown)
	}
	closeStore(t, s)
	if names, err := snapshotNames(dir); err != nil || len(names) != 1 {
		t.Errorf("snapshots: %v %v", names, err)
	}
}

func TestHistoryKeepsWhatItMay(t *testing.T) {
	h := &history{limit: History{MaxBytes: 2000 * (100 + entryOverhead), MaxAge: time.Hour}, least: historyEntriesMin}
	now := time.Now()
	for i := uint64(1); i <= 10_000; i++ {
		h.add(i, 100, now)
	}
	if from := h.keepFrom(10_000); from < 8000 || from > 8000+2*markEach {
		t.Errorf("keeps from %d, want about the last 2000", from)
	}
	h.limit.MaxBytes = 1
	if from := h.keepFrom(10_000); from != 9001 {
		t.Errorf("keeps from %d, want the last %d", from, historyEntriesMin)
	}
	h.limit.MaxBytes = 1 << 40
	if from := h.keepFrom(10_000); from != 1 {
		t.Errorf("keeps from %d, want all", from)
	}
	h.add(10_001, 1, now)
	for i := range h.marks[:100] {
		h.marks[i].at = now.Add(-2 * time.Hour)
	}
	if from := h.keepFrom(10_001); from != 100*markEach+1 {
		t.Errorf("keeps from %d, want what is younger than the limit", from)
	}
	h.cut(5000)
	if h.marks[0].last <= 5000 {
		t.Errorf("first mark %+v", h.marks[0])
	}
}

// BenchmarkCapture measures how long applying stands still for a snapshot of 10,000 leases.
func BenchmarkCapture(b *testing.B) {
	s := openWith(b, Options{Dir: b.TempDir(), Replica: "e1"})
	x := running(b, s, world(16, 1000), nil)
	done := make(chan struct{}, 10_000)
	for i := range 10_000 {
		x.Propose(admit("request-"+strconv.Itoa(i)), funcReceiver(func(fsm.Outcome, error) { done <- struct{}{} }))
	}
	for range 10_000 {
		<-done
	}
	var c capture
	b.ResetTimer()
	for range b.N {
		var err error
		if c, err = s.replica.capture(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	var out bytes.Buffer
	if err := c.write(&out); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(out.Len()), "bytes")
}
