package storage

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"iop/fsm"
	"iop/proto/recordpb"
)

var update = flag.Bool("update", false, "write the golden files of records that have none")

// everyCommand has each kind with every field set, and each once more with as little as possible.
func everyCommand() map[string]fsm.Command {
	return map[string]fsm.Command{
		"open_session": &fsm.OpenSession{Edge: "edge-1", Nonce: 0xfedcba9876543210},
		"admit_direct": &fsm.Admit{
			Request: "r\xff1", Fingerprint: fsm.Fingerprint{1, 2, 15: 9}, Model: "provider:codex/gpt-5", Class: fsm.ClassLong,
			InputTokens: 131072, Needs: fsm.NeedChat, MaxWait: 30 * fsm.Second, Provider: "codex", Served: "gpt-5",
		},
		"submit": &fsm.Submit{
			Response: "resp_1", Request: fsm.Admit{
				Request: "r1", Fingerprint: fsm.Fingerprint{1, 15: 9}, Model: "m", Class: fsm.ClassLong, InputTokens: 9, Needs: fsm.NeedChat, MaxWait: 1,
				Provider: "p", Served: "s", Principal: "ann", Token: "t", Metered: true,
			},
			Payload: everyPayload(),
		},
		"submit_least":           &fsm.Submit{Response: "r"},
		"progress":               &fsm.Progress{Response: "resp_1", Lease: 300, Status: fsm.ResponseCompleted, Payload: everyPayload()},
		"progress_least":         &fsm.Progress{Response: "r"},
		"keep":                   &fsm.Keep{Response: "resp_1", Principal: "ann", Status: fsm.ResponseIncomplete, Payload: everyPayload()},
		"forget":                 &fsm.Forget{Response: "resp_1"},
		"apply_config_responses": everyResponses(),
		"add_join":               &fsm.AddJoin{Token: fsm.TokenHash{1, 31: 2}, Node: "n1", TTL: 3600 * fsm.Second},
		"redeem_join":            &fsm.RedeemJoin{Token: fsm.TokenHash{1, 31: 2}, NodeToken: fsm.TokenHash{3, 31: 4}},
		"announce":               &fsm.Announce{Address: "edge-1.example:8081"},
		"raise_level":            &fsm.RaiseLevel{Level: 2},
		"digest_check":           &fsm.DigestCheck{Index: 10000, Digest: [32]byte{1, 31: 2}},
		"end_session":            &fsm.EndSession{Edge: "edge-1", Session: 7, Reason: fsm.ReasonGoodbye},
		"end_session_apart":      &fsm.EndSession{Edge: "edge-1", Session: 7, Reason: fsm.ReasonSessionEnded, Alive: true, Apart: true},
		"end_session_since": &fsm.EndSession{
			Edge: "edge-1", Session: 7, Reason: fsm.ReasonSessionEnded, Alive: true, Apart: true, Since: 3600 * fsm.Second,
		},
		"evict":             &fsm.Evict{Request: "r1"},
		"end_session_alive": &fsm.EndSession{Edge: "edge-1", Session: 7, Reason: fsm.ReasonSessionEnded, Alive: true},
		"admit_place": &fsm.Admit{
			Request: "r\xff1", Fingerprint: fsm.Fingerprint{1, 2, 15: 9}, Model: "provider:codex/gpt-5", Class: fsm.ClassLong,
			InputTokens: 131072, Needs: fsm.NeedChat, MaxWait: 30 * fsm.Second, Provider: "codex", Served: "gpt-5",
			Principal: "team-\xfe", Token: "ann-1", Metered: true, Place: 1 << 40,
		},
		"release_unsent": &fsm.Release{
			Lease: 300, Reason: fsm.ReasonNeverSent, Requeue: true, Unsent: true,
			Usage: fsm.Usage{Told: true, Prompt: 1 << 40, Completion: 300, Cached: 5, Reasoning: 6},
		},
		"submit_place": &fsm.Submit{ // which means nothing there
			Response: "resp_1", Request: fsm.Admit{
				Request: "r1", Fingerprint: fsm.Fingerprint{1, 15: 9}, Model: "m", Class: fsm.ClassLong, InputTokens: 9, Needs: fsm.NeedChat, MaxWait: 1,
				Provider: "p", Served: "s", Principal: "ann", Token: "t", Metered: true, Place: 7,
			},
			Payload: everyPayload(),
		},
		"admit": &fsm.Admit{
			Request: "r\xff1", Fingerprint: fsm.Fingerprint{1, 2, 15: 9}, Model: "ornith:35b", Class: fsm.ClassLong,
			InputTokens: 131072, Needs: fsm.NeedChat | fsm.NeedTunnel, MaxWait: 30 * fsm.Second,
		},
		"admit_least":   &fsm.Admit{Request: "r", Model: "m"},
		"cancel":        &fsm.Cancel{Request: "r1"},
		"release":       &fsm.Release{Lease: 300, Reason: fsm.ReasonBackendError, Requeue: true},
		"release_least": &fsm.Release{Lease: 1},
		"admit_metered": &fsm.Admit{
			Request: "r\xff1", Fingerprint: fsm.Fingerprint{1, 2, 15: 9}, Model: "provider:codex/gpt-5", Class: fsm.ClassLong,
			InputTokens: 131072, Needs: fsm.NeedChat, MaxWait: 30 * fsm.Second, Provider: "codex", Served: "gpt-5",
			Principal: "team-\xfe", Token: "ann-1", Metered: true,
		},
		"release_metered": &fsm.Release{
			Lease: 300, Reason: fsm.ReasonBackendError, Requeue: true,
			Usage: fsm.Usage{Told: true, Prompt: 1 << 40, Completion: 300, Cached: 5, Reasoning: 6},
		},
		"release_untold":          &fsm.Release{Lease: 300, Reason: fsm.ReasonDone, Usage: fsm.Usage{Told: true}},
		"apply_config_principals": everyLimit(),
		"register_node":           &fsm.RegisterNode{Node: "n1", Instance: 1 << 63, Supersede: 4, Running: []fsm.LeaseID{1, 200, 1 << 40}},
		"node_ready":              &fsm.NodeReady{Node: "n1", Generation: 5},
		"link_lost":               &fsm.LinkLost{Node: "n1", Generation: 5, Reason: fsm.ReasonHeartbeat},
		"link_report":             &fsm.LinkReport{Node: "n1", Generation: 5, Running: []fsm.LeaseID{3, 4}},
		"link_drained":            &fsm.LinkReport{Node: "n1", Generation: 5},
		"set_health": &fsm.SetHealth{
			Node: "n1", Generation: 5, Provider: "p1", Health: fsm.Degraded, Cause: strings.Repeat("very broken ", 20),
		},
		"drain":        &fsm.Drain{Node: "n1", Provider: "p1", On: true},
		"apply_config": everyConfig(),
		"expire":       &fsm.Expire{Term: 3},
		"expire_least": &fsm.Expire{},
	}
}

func everyConfig() *fsm.ApplyConfig {
	return &fsm.ApplyConfig{
		Document: []byte(`{"models":{}}`),
		Config: fsm.Config{
			Pool: fsm.Pool{
				MaxQueue: 16, QueueTimeout: 30 * fsm.Second, StartupGrace: fsm.Second, ReattachWindow: 60 * fsm.Second,
				FenceTimeout: 5 * fsm.Second,
			},
			Models: []fsm.ModelConfig{
				{ID: "a", Candidates: []fsm.Candidate{{Provider: "p1", Served: "s1"}, {Provider: "p2", Served: "s2"}}},
				{ID: "b"},
			},
			Nodes: []fsm.NodeID{"n1", "n2"},
			Providers: []fsm.ProviderConfig{
				{
					ID: "p1", Node: "n1", Capacity: 4, LongCapacity: fsm.LongUncounted, ContextWindow: 32768, Priority: -3,
					Enabled: true, Can: fsm.AllNeeds,
				},
				{ID: "p2", Node: "n2", LongCapacity: 1},
			},
		},
		Expected: 2, Force: true, Edge: "edge-1", Offer: "0badcafe",
	}
}

func everyLimit() *fsm.ApplyConfig {
	c := everyConfig()
	c.Config.Pool.Fair = true
	c.Config.Principals = everyPrincipal()
	return c
}

func everyPayload() fsm.Payload {
	return fsm.Payload{Record: []byte("asked\x00"), Object: []byte("{}"), Events: []byte("said\xff"), Count: 3}
}

func everyResponses() *fsm.ApplyConfig {
	c := everyLimit()
	c.Config.Pool.ResponsesBytes, c.Config.Pool.ResponsesRetention = 1<<40, 3600*fsm.Second
	return c
}

func everyPrincipal() []fsm.PrincipalConfig {
	return []fsm.PrincipalConfig{
		{ID: "ann", Models: []fsm.ModelID{"a", "b"}, MaxInFlight: 3, MaxQueued: fsm.QueuedUnlimited},
		{ID: "bob"},
	}
}

func entryOf(cmds ...fsm.Command) *record {
	b := &batch{lane: &lane{id: 77}, seq: 5, ack: 4}
	for _, c := range cmds {
		b.add(c, nil)
	}
	b.sum = commandSum(b.front.bytes, b.back.bytes)
	return &record{term: 3, elapsed: 12345678901, wall: 1764428400000000000, batches: []*batch{b}}
}

func encode(r *record) []byte { return appendRecord(nil, r) }

// reencode encodes a decoded entry again.
func reencode(t testing.TB, e *fsm.Entry) []byte {
	t.Helper()
	r := &record{term: e.Term, elapsed: e.Elapsed, wall: e.Wall}
	for _, in := range e.Batches {
		b := &batch{lane: &lane{id: in.Session}, seq: in.Seq, ack: in.AckBelow, ordered: true}
		for _, c := range in.Commands {
			b.add(c, nil)
		}
		b.front, b.back = b.back, b.front // admissions and the rest in the order they were read
		b.sum = commandSum(b.front.bytes, b.back.bytes)
		r.batches = append(r.batches, b)
	}
	return encode(r)
}

// TestGoldenEntries holds the bytes of every command kind: what a release wrote, all later ones must read.
func TestGoldenEntries(t *testing.T) {
	for name, cmd := range everyCommand() {
		t.Run(name, func(t *testing.T) {
			b := encode(entryOf(cmd))
			var generated recordpb.Entry
			golden(t, "v1-entry-"+name, b, &generated)
			var d decoder
			e, err := d.entry(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]fsm.Command{cmd}, e.Batches[0].Commands); diff != "" {
				t.Errorf("decoded another command:\n%s", diff)
			}
			if again := reencode(t, e); !bytes.Equal(b, again) {
				t.Errorf("encoded again:\n%x\nwas\n%x", again, b)
			}
		})
	}
}

// golden compares bytes with a file of their hex and their text as the generated code reads them, and holds that the
// generated code writes the same bytes.
func golden(t *testing.T, name string, b []byte, m proto.Message) {
	t.Helper()
	if err := unmarshal(b, m); err != nil {
		t.Fatalf("generated code can't read it: %v", err)
	}
	if again := marshal(m); !bytes.Equal(again, b) {
		t.Fatalf("generated code writes\n%x\ninstead of\n%x", again, b)
	}
	path := filepath.Join("testdata", "golden", name+".txt")
	if _, err := os.Stat(path); err != nil && *update {
		text := prototext.MarshalOptions{Multiline: true}.Format(m)
		if err := os.WriteFile(path, fmt.Appendf(nil, "# %x\n%s", b, text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (a new record? run go test -update)", err)
	}
	first, text, _ := strings.Cut(string(content), "\n")
	want, err := hex.DecodeString(strings.TrimPrefix(first, "# "))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b) {
		t.Errorf("bytes changed, which no old log can follow:\n%x\nwas\n%x", b, want)
	}
	fromText := m.ProtoReflect().New().Interface()
	if err := prototext.Unmarshal([]byte(text), fromText); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(m, fromText) {
		t.Errorf("meaning changed: %v, was %s", m, text)
	}
}

// TestEveryKindIsHeld fails when a command kind is added without a record.
func TestEveryKindIsHeld(t *testing.T) {
	kinds := (&recordpb.Command{}).ProtoReflect().Descriptor().Fields().Len()
	seen := map[reflect.Type]bool{}
	for _, c := range everyCommand() {
		seen[reflect.TypeOf(c)] = true
	}
	if len(seen) != kinds {
		t.Errorf("%d kinds of command in tests, %d in record.proto", len(seen), kinds)
	}
}

func TestEntryOfSeveralBatches(t *testing.T) {
	r := entryOf(admit("a"), &fsm.Release{Lease: 1}, admit("b"))
	second := entryOf(&fsm.OpenSession{Edge: "e", Nonce: 1})
	second.batches[0].lane = &lane{}
	r.batches = append(r.batches, second.batches[0], entryOf().batches[0])
	var d decoder
	e, err := d.entry(encode(r))
	if err != nil {
		t.Fatal(err)
	}
	want := []fsm.Command{&fsm.Release{Lease: 1}, admit("a"), admit("b")}
	if diff := cmp.Diff(want, e.Batches[0].Commands); diff != "" {
		t.Error(diff)
	}
	if len(e.Batches) != 3 || e.Batches[1].Session != 0 || len(e.Batches[2].Commands) != 0 {
		t.Errorf("batches: %+v", e.Batches)
	}
}

// TestNewerRecordsStop: what a newer version wrote is refused with a clear error, never guessed at.
func TestNewerRecordsStop(t *testing.T) {
	command := func(kind protowire.Number, body []byte) []byte {
		c := protowire.AppendBytes(protowire.AppendTag(nil, kind, bytesType), body)
		cmds := protowire.AppendBytes(protowire.AppendTag(nil, 5, bytesType), c)
		b := appendFixed(nil, 4, commandSum(cmds))
		b = append(b, cmds...)
		e := appendUint(nil, 1, entryFormat)
		return protowire.AppendBytes(protowire.AppendTag(e, 6, bytesType), b)
	}
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"format":        {appendUint(nil, 1, 2), "entry format 2, this version reads 1"},
		"level":         {appendUint(appendUint(nil, 1, 1), 2, 9), "feature level 9"},
		"entry field":   {appendUint(appendUint(nil, 1, 1), 9, 9), "unknown field 9"},
		"kind":          {command(99, nil), "kind 99: unknown kind"},
		"command field": {command(kindCancel, appendUint(nil, 3, 1)), "unknown field 3"},
		"empty":         {nil, "does not begin with its format"},
		"no format":     {appendUint(nil, 2, 1), "does not begin with its format"},
		"bool":          {command(kindRelease, appendUint(nil, 3, 2)), "field 3 is 2"},
		"wrong type":    {command(kindRelease, appendText(nil, 1, "x")), "field 1 has type 2"},
	} {
		t.Run(name, func(t *testing.T) {
			var d decoder
			_, err := d.entry(c.bytes)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestDamagedEntryIsRefused: every flipped bit and every cut in the commands is noticed.
func TestDamagedEntryIsRefused(t *testing.T) {
	r := entryOf(admit("request"), &fsm.Release{Lease: 9, Reason: fsm.ReasonDone})
	good := encode(r)
	start := len(good) - r.batches[0].size()
	var d decoder
	for i := start; i < len(good); i++ {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if _, err := d.entry(bad); err == nil {
			t.Errorf("byte %d changed, nobody noticed", i)
		}
		if _, err := d.entry(good[:i]); err == nil {
			t.Errorf("cut at %d, nobody noticed", i)
		}
	}
}

func TestUnknownRowFieldIsRefused(t *testing.T) {
	b := appendUint(marshal(&recordpb.ModelRow{Id: []byte("m")}), 9, 1)
	if err := unmarshal(b, &recordpb.ModelRow{}); !errors.Is(err, ErrNewer) {
		t.Errorf("error %v", err)
	}
}

func FuzzEntry(f *testing.F) {
	for _, c := range everyCommand() {
		f.Add(encode(entryOf(c)))
	}
	f.Add(encode(entryOf(admit("a"), &fsm.Cancel{Request: "a"}, &fsm.Release{Lease: 1})))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d decoder
		e, err := d.entry(b)
		if err != nil {
			return
		}
		e2, err := d.entry(reencode(t, e))
		if err != nil {
			t.Fatalf("own encoding is refused: %v", err)
		}
		for _, x := range []*fsm.Entry{e, e2} {
			for i := range x.Batches {
				x.Batches[i].Sum = 0 // input that is not minimal has another
			}
		}
		if !reflect.DeepEqual(e, e2) {
			t.Fatalf("decoded %+v, then %+v", e, e2)
		}
	})
}

func BenchmarkEncodeEntry(b *testing.B) {
	c := everyCommand()["admit"]
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 1024)
		for b.Loop() {
			buf = appendCommand(buf[:0], c)
		}
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		a := c.(*fsm.Admit)
		buf := make([]byte, 0, 1024)
		for b.Loop() {
			m := &recordpb.Command{Kind: &recordpb.Command_Admit{Admit: &recordpb.Admit{
				Request: []byte(a.Request), Fingerprint: a.Fingerprint[:], Model: []byte(a.Model), Class: uint32(a.Class),
				InputTokens: a.InputTokens, Needs: uint32(a.Needs), MaxWait: int64(a.MaxWait),
			}}}
			var err error
			if buf, err = (proto.MarshalOptions{}).MarshalAppend(buf[:0], m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecodeEntry(b *testing.B) {
	cmds := make([]fsm.Command, 1000)
	for i := range cmds {
		cmds[i] = &fsm.Admit{Request: fsm.RequestID(fmt.Sprint("request-", i)), Model: "ornith:35b", Needs: 1, Fingerprint: fsm.Fingerprint{1}}
	}
	data := encode(entryOf(cmds...))
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		var d decoder
		for range b.N {
			if _, err := d.entry(data); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/command")
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var e recordpb.Entry
			if err := proto.Unmarshal(data, &e); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/command")
	})
}
