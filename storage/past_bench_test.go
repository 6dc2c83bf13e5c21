package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"iop/fsm"
)

// grow puts n entries behind the log of a directory: admissions and releases, one command each, with 3 requests waiting
// most of the time. It returns the last index.
func grow(t testing.TB, dir string, n int) uint64 {
	t.Helper()
	id, err := readIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenPast(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.At(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	d := &directory{path: dir, identity: id}
	bolt, err := d.openLog()
	if err != nil {
		t.Fatal(err)
	}
	log := d.sealing(bolt)
	session, _ := m.CurrentSession("e1")
	last, at := p.End(), m.Now()
	lease, seq := uint64(m.NextLease()), uint64(1)
	for _, s := range m.Image().Sessions {
		seq = s.NextSeq
	}
	logs := make([]*raft.Log, 0, 10_000)
	for i := range n {
		var c fsm.Command = &fsm.Admit{Request: fsm.RequestID(fmt.Sprintf("grown-%08d", i)), Model: "m", InputTokens: 100, Needs: fsm.NeedChat}
		if i%2 == 1 && i > 8 {
			c = &fsm.Release{Lease: fsm.LeaseID(lease), Reason: fsm.ReasonDone}
			lease++
		}
		at += fsm.Millisecond
		last++
		logs = append(logs, &raft.Log{
			Index: last, Term: m.Term(), Type: raft.LogCommand, AppendedAt: time.Now(),
			Data: EncodeEntry(&fsm.Entry{Term: m.Term(), Elapsed: at, Wall: m.Wall() + int64(at), Batches: []fsm.Batch{
				{Session: session, Seq: seq, AckBelow: seq, Commands: []fsm.Command{c}},
			}}),
		})
		seq++
		if len(logs) == cap(logs) || i == n-1 {
			if err := log.StoreLogs(logs); err != nil {
				t.Fatal(err)
			}
			logs = logs[:0]
		}
	}
	if err := bolt.Close(); err != nil {
		t.Fatal(err)
	}
	return last
}

// BenchmarkMillion asks a log of a million entries, one command each, that no snapshot but the empty state at its
// beginning helps with: the worst case. Each answer includes opening the directory and verifying it.
//
//	go test ./storage -run '^$' -bench Million -benchtime 1x
func BenchmarkMillion(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "e1")
	s := openAt(b, dir)
	running(b, s, world(1, 4), func([]fsm.Effect) {})
	closeStore(b, s)
	last := grow(b, dir, 1_000_000)
	middle := fsm.RequestID(fmt.Sprintf("grown-%08d", 500_000))
	for _, ask := range []struct {
		name string
		do   func(p *Past) error
	}{
		{"open", func(*Past) error { return nil }},
		{"at=last", func(p *Past) error { _, err := p.At(b.Context(), last); return err }},
		{"at=middle", func(p *Past) error { _, err := p.At(b.Context(), last/2); return err }},
		{"request", func(p *Past) error { return someLines(p.Story(b.Context(), Subject{Request: middle})) }},
		{"lease", func(p *Past) error { return someLines(p.Story(b.Context(), Subject{Lease: 250_000})) }},
		{"node", func(p *Past) error { return someLines(p.Story(b.Context(), Subject{Node: "n1"})) }},
		{"log,request", func(p *Past) error {
			return p.Log(b.Context(), Filter{Request: middle}, func(*Record) error { return nil })
		}},
		{"log,lease", func(p *Past) error {
			return p.Log(b.Context(), Filter{Lease: 250_000}, func(*Record) error { return nil })
		}},
		{"time", func(p *Past) error { _, err := p.IndexAt(b.Context(), time.Now()); return err }},
	} {
		b.Run(ask.name, func(b *testing.B) {
			for b.Loop() {
				p, err := OpenPast(dir)
				if err != nil {
					b.Fatal(err)
				}
				if err := ask.do(p); err != nil {
					b.Error(err)
				}
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func someLines(s *Story, err error) error {
	if err == nil && (len(s.Lines) == 0 || !s.Complete) {
		return fmt.Errorf("%d lines, complete %t", len(s.Lines), s.Complete)
	}
	return err
}

// BenchmarkMillionLive asks a running store with as long a log and one snapshot for a recent request whose beginning is
// known, as the admin listener does for every request in being.
//
//	go test ./storage -run '^$' -bench MillionLive -benchtime 1x
func BenchmarkMillionLive(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "e1")
	s := openAt(b, dir)
	running(b, s, world(1, 4), func([]fsm.Effect) {})
	closeStore(b, s)
	grow(b, dir, 1_000_000)
	s, err := Open(b.Context(), Options{Dir: dir, Replica: "e1", Version: "v1"})
	if err != nil {
		b.Fatal(err)
	}
	defer closeStore(b, s)
	for s.Stats().SnapshotIndex == 0 {
		select {
		case <-time.After(snapshotPoll):
		case <-b.Context().Done():
			b.Fatal("no snapshot")
		}
	}
	x, err := s.OpenSession(b.Context(), "e1", func([]fsm.Effect) {})
	if err != nil {
		b.Fatal(err)
	}
	must(b, x, admit("recent"), fsm.Granted, fsm.Queued, fsm.Refused)
	since := s.Stats().LastIndex
	for i := range 2000 {
		must(b, x, admit(fmt.Sprint(i)), fsm.Granted, fsm.Queued, fsm.Refused)
	}
	for b.Loop() {
		p, err := s.Past()
		if err != nil {
			b.Fatal(err)
		}
		if err := someLines(p.Story(b.Context(), Subject{Request: "recent", Since: since})); err != nil {
			b.Error(err)
		}
	}
}
