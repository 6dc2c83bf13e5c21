package storage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/fsm"
)

// A golden log is what a release has written: every entry of a replica's log as it stands on the disk, and the digest of
// the state behind it. Each newer version has to come to the same state, byte for byte of the digest. The files are
// testdata/logs/NAME.log (index, term and data of each entry, each with its length as a varint) and NAME.digest.
// They are never written anew; a release adds its own: go test ./storage -run TestRecordLog -update.

// TestGoldenLogs replays all.
func TestGoldenLogs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "logs", "*.log"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".log"), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".log") + ".digest")
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m := replayLog(t, content)
			if got := fmt.Sprintf("%x\n", m.Digest()); got != string(want) {
				t.Errorf("after entry %d the digest is %s, that release had %s", m.Index(), got, want)
			}
			if err := m.Check(); err != nil {
				t.Error(err)
			}
			again, err := fsm.Restore(m.Image())
			if err != nil || again.Digest() != m.Digest() {
				t.Errorf("restored from its image it is another: %v", err)
			}
		})
	}
}

func replayLog(t *testing.T, content []byte) *fsm.Machine {
	t.Helper()
	m := fsm.New()
	r := bufio.NewReader(bytes.NewReader(content))
	var d decoder
	for n := 0; ; n++ {
		index, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) && n > 0 {
			return m
		}
		term, err2 := binary.ReadUvarint(r)
		size, err3 := binary.ReadUvarint(r)
		data := make([]byte, size)
		_, err4 := io.ReadFull(r, data)
		if err := errors.Join(err, err2, err3, err4); err != nil {
			t.Fatalf("record %d: %v", n, err)
		}
		e, err := d.entry(data)
		if err != nil {
			t.Fatalf("entry %d: %v", index, err)
		}
		e.Index, e.Term = index, term
		m.Apply(e)
	}
}

// TestRecordLog holds what the recorder writes against what it reads; with -update it records this version's log, unless
// there is one of that name.
func TestRecordLog(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	everything(t, s)
	want := digest(s)
	var b bytes.Buffer
	first, last, err := s.bounds()
	if err != nil {
		t.Fatal(err)
	}
	err = pastLive{s.guard}.each(first, last, func(r *rawEntry) error {
		if !r.command {
			return nil
		}
		b.Write(binary.AppendUvarint(nil, r.index))
		b.Write(binary.AppendUvarint(nil, r.term))
		b.Write(binary.AppendUvarint(nil, uint64(len(r.data))))
		b.Write(r.data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := replayLog(t, b.Bytes()).Digest(); got != want {
		t.Fatalf("what was recorded leads to %x, the replica has %x", got, want)
	}
	if level := s.replica.level.Load(); level != fsm.LevelMax {
		t.Errorf("what is recorded has nothing of level %d", fsm.LevelMax)
	}
	name := filepath.Join("testdata", "logs", fmt.Sprintf("level%d", s.replica.level.Load()))
	if _, err := os.Stat(name + ".log"); err == nil || !*update {
		return
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".log", b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".digest", []byte(hex.EncodeToString(want[:])+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// everything has a store carry out each kind of command, so that most paths of the machine are in its log: those of the first
// two levels, then those that came with each later one.
func everything(t *testing.T, s *Store) {
	t.Helper()
	x := running(t, s, world(3, 2), nil)
	for i := range 40 {
		o := must(t, x, admit(fmt.Sprint("r", i)), fsm.Granted, fsm.Queued)
		if o.Code == fsm.Granted && i%3 == 0 {
			must(t, x, &fsm.Release{Lease: o.Grant.Lease, Requeue: i%2 == 0}, fsm.Returned, fsm.Granted, fsm.Queued, fsm.Refused)
		}
	}
	do := func(c fsm.Command) fsm.Outcome {
		t.Helper()
		o, err := x.Do(within(t), c)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		return o
	}
	do(&fsm.Cancel{Request: "r39"})
	do(&fsm.SetHealth{Node: "n1", Generation: 1, Provider: "p0", Health: fsm.Degraded, Cause: "slow"})
	do(&fsm.Drain{Node: "n1", Provider: "p1", On: true})
	do(&fsm.Drain{Node: "n1", Provider: "p1"})
	do(&fsm.Announce{Address: "edge-1.example:7443"})
	do(&fsm.AddJoin{Token: fsm.TokenHash{1}, Node: "n1", TTL: 3600 * fsm.Second})
	do(&fsm.RedeemJoin{Token: fsm.TokenHash{1}, NodeToken: fsm.TokenHash{2}})
	do(&fsm.Admit{Request: "direct", Model: "provider:p2", Provider: "p2", Needs: fsm.NeedChat})
	do(&fsm.LinkLost{Node: "n1", Generation: 1, Reason: fsm.ReasonLinkLost})
	g := do(&fsm.RegisterNode{Node: "n1", Instance: 8})
	do(&fsm.NodeReady{Node: "n1", Generation: g.Generation})
	do(&fsm.LinkReport{Node: "n1", Generation: 1})
	do(&fsm.DigestCheck{Index: 3})
	if o, err := s.Do(within(t), world(2, 1)); err != nil || o.Code != fsm.Applied {
		t.Fatal(o, err)
	}
	if err := x.End(within(t), fsm.ReasonGoodbye); err != nil {
		t.Fatal(err)
	}
	y, err := s.OpenSession(within(t), "e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	must(t, y, admit("r38"), fsm.Granted, fsm.Queued, fsm.Refused)
	o := must(t, y, &fsm.RegisterNode{Node: "n1", Instance: 8}, fsm.Registered)
	must(t, y, &fsm.NodeReady{Node: "n1", Generation: o.Generation}, fsm.Done)
	principalsUse(t, s, y)
	everyStored(t, y)
	everyPlace(t, s, y)
}

// of is a metered request of a principal.
func of(who fsm.PrincipalID, id string) *fsm.Admit {
	a := admit(id)
	a.Principal, a.Token, a.Metered = who, "key-"+string(who), true
	return a
}

// principalsUse: limits, a fair queue, the ledger.
func principalsUse(t *testing.T, s *Store, x *Session) {
	t.Helper()
	c := world(2, 1)
	c.Config.Pool.Fair, c.Config.Pool.ResponsesBytes, c.Config.Pool.ResponsesRetention = true, 1<<20, 3600*fsm.Second
	c.Config.Principals = []fsm.PrincipalConfig{
		{ID: "ann", MaxInFlight: 1, MaxQueued: 3}, {ID: "bob", Models: []fsm.ModelID{"m"}, MaxQueued: fsm.QueuedUnlimited},
	}
	c.Document = []byte(`{"v":3}`)
	if o, err := s.Do(within(t), c); err != nil || o.Code != fsm.Applied {
		t.Fatal(o, err)
	}
	var leases []fsm.LeaseID
	s.View(func(m *fsm.Machine) {
		for _, r := range m.Leases() {
			leases = append(leases, r.Lease)
		}
	})
	for i := range 6 {
		must(t, x, of("ann", fmt.Sprint("ann", i)), fsm.Granted, fsm.Queued, fsm.Refused)
		must(t, x, of("bob", fmt.Sprint("bob", i)), fsm.Granted, fsm.Queued)
	}
	for _, lease := range leases {
		must(t, x, &fsm.Release{Lease: lease, Reason: fsm.ReasonDone}, fsm.Returned, fsm.AlreadyReleased)
	}
	for i := range 4 {
		must(t, x, &fsm.Release{
			Lease: held(t, s, 0), Reason: fsm.ReasonDone, Usage: fsm.Usage{Told: true, Prompt: int64(10 + i), Completion: 5, Cached: 3, Reasoning: 2},
		}, fsm.Returned)
	}
	must(t, x, &fsm.Release{Lease: held(t, s, 0), Reason: fsm.ReasonBackendError}, fsm.Returned)
	foreign := of("bob", "foreign")
	foreign.Model = "other"
	must(t, x, foreign, fsm.Refused)
}

// held is a lease that is held, by its number in the order of their ids.
func held(t *testing.T, s *Store, n int) (lease fsm.LeaseID) {
	t.Helper()
	s.View(func(m *fsm.Machine) {
		if all := m.Leases(); n < len(all) {
			lease = all[n].Lease
		}
	})
	if lease == 0 {
		t.Fatal("nothing is held")
	}
	return lease
}

// everyStored: responses that are stored, run in the background, put back, cancelled and forgotten.
func everyStored(t *testing.T, x *Session) {
	t.Helper()
	for i := range 4 {
		must(t, x, &fsm.Submit{Response: fsm.ResponseID(fmt.Sprint("resp", i)), Request: *of("bob", ""), Payload: everyPayload()}, fsm.Queued)
	}
	must(t, x, &fsm.Keep{Response: "kept", Principal: "ann", Status: fsm.ResponseIncomplete, Payload: everyPayload()}, fsm.Done)
	must(t, x, &fsm.Progress{Response: "resp0", Status: fsm.ResponseCancelled, Payload: everyPayload()}, fsm.Done)
	must(t, x, &fsm.Forget{Response: "resp1"}, fsm.Done)
	for i := 0; ; i++ { // until it is its turn
		var lease fsm.LeaseID
		x.store.View(func(m *fsm.Machine) { _, lease, _ = m.Response("resp2") })
		if lease != 0 {
			must(t, x, &fsm.Progress{Response: "resp2", Lease: lease, Status: fsm.ResponseInProgress, Payload: everyPayload()}, fsm.Done)
			must(t, x, &fsm.Release{Lease: lease, Reason: fsm.ReasonBackendError}, fsm.Returned)
			break
		}
		must(t, x, &fsm.Release{Lease: held(t, x.store, 0), Reason: fsm.ReasonDone}, fsm.Returned)
	}
}

// everyPlace: places that are claimed, given up and exchanged, and an edge that may live without its session.
func everyPlace(t *testing.T, s *Store, x *Session) {
	t.Helper()
	for i := range 3 { // some hold what there is
		must(t, x, of("bob", fmt.Sprint("holds", i)), fsm.Granted, fsm.Queued)
	}
	must(t, x, &fsm.Release{Lease: held(t, s, 0), Requeue: true, Unsent: true}, fsm.Queued, fsm.Granted, fsm.Returned)
	must(t, x, of("bob", "evicted"), fsm.Queued)
	must(t, x, &fsm.Evict{Request: "evicted"}, fsm.Removed)
	claim := of("bob", "claims")
	claim.Place = 1
	must(t, x, claim, fsm.Queued, fsm.Granted)
	z, err := s.OpenSession(within(t), "e2", nil)
	if err != nil {
		t.Fatal(err)
	}
	o := must(t, z, &fsm.RegisterNode{Node: "n1", Instance: 8}, fsm.Registered)
	must(t, z, &fsm.NodeReady{Node: "n1", Generation: o.Generation}, fsm.Done)
	lost, again := of("bob", "lost"), of("bob", "again")
	lost.Fingerprint, again.Fingerprint = fsm.Fingerprint{9}, fsm.Fingerprint{9}
	o = must(t, z, lost, fsm.Queued)
	place := o.Enqueue
	must(t, x, of("bob", "between"), fsm.Queued)
	must(t, x, again, fsm.Queued)
	end := &fsm.EndSession{Edge: "e2", Session: z.ID(), Reason: fsm.ReasonSessionEnded, Alive: true, Apart: true, Since: 1}
	if o, err := s.Do(within(t), end); err != nil || o.Code != fsm.Done {
		t.Fatal(o, err)
	}
	s.View(func(m *fsm.Machine) {
		if r, ok := m.Request("again"); !ok || r.Enqueue != place {
			t.Errorf("again has place %d, want that of lost, %d", r.Enqueue, place)
		}
	})
	claimed := *lost
	claimed.Place = place
	must(t, x, &claimed, fsm.Queued)
}
