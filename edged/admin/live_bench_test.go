package admin_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"iop/edged/admin"
	"iop/fsm"
)

// crowd is a machine with 1,000 providers on 100 nodes, all full, and 10,000 waiters of four models with 250 candidates each.
func crowd(b *testing.B) *crowded {
	m := fsm.New()
	c := &crowded{m: m}
	config := fsm.Config{Pool: fsm.Pool{MaxQueue: 20_000, QueueTimeout: 600 * fsm.Second}}
	for n := range 100 {
		config.Nodes = append(config.Nodes, fsm.NodeID(fmt.Sprintf("node-%03d", n)))
	}
	for k := range 4 {
		config.Models = append(config.Models, fsm.ModelConfig{ID: fsm.ModelID(fmt.Sprint("model-", k))})
	}
	for p := range 1000 {
		id := fsm.ProviderID(fmt.Sprintf("provider-%04d", p))
		config.Providers = append(config.Providers, fsm.ProviderConfig{
			ID: id, Node: config.Nodes[p/10], Capacity: 1, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds,
		})
		model := &config.Models[p%4]
		model.Candidates = append(model.Candidates, fsm.Candidate{Provider: id, Served: "s"})
	}
	if o := c.do(0, &fsm.ApplyConfig{Document: []byte{}, Config: config}); o.Code != fsm.Applied {
		b.Fatal(o)
	}
	c.session = c.do(0, &fsm.OpenSession{Edge: "edge-1", Nonce: 7}).Session
	for _, n := range config.Nodes {
		o := c.do(c.session, &fsm.RegisterNode{Node: n, Instance: 9})
		c.do(c.session, &fsm.NodeReady{Node: n, Generation: o.Generation})
	}
	for i := range 11_000 {
		c.admit(fmt.Sprintf("request-%05d", i), i%4)
	}
	if m.Pending() != 10_000 {
		b.Fatalf("%d wait", m.Pending())
	}
	return c
}

type crowded struct {
	m       *fsm.Machine
	session fsm.SessionID
	seq     [2]uint64
	locked  time.Duration // that the machine was looked at
}

func (c *crowded) View(fn func(*fsm.Machine)) {
	start := time.Now()
	fn(c.m)
	c.locked += time.Since(start)
}

func (c *crowded) admit(id string, model int) {
	c.do(c.session, &fsm.Admit{Request: fsm.RequestID(id), Model: fsm.ModelID(fmt.Sprint("model-", model)), Needs: fsm.NeedChat})
}

func (c *crowded) do(s fsm.SessionID, cmd fsm.Command) fsm.Outcome {
	n := &c.seq[min(1, int(s))]
	*n++
	return c.m.Apply(&fsm.Entry{
		Index: c.m.Index() + 1, Term: 1, Elapsed: fsm.Second, Wall: epoch.UnixNano(),
		Batches: []fsm.Batch{{Session: s, Seq: *n, Sum: 1, Commands: []fsm.Command{cmd}}},
	}).Outcomes[0][0]
}

// BenchmarkLiveTick is one tick of the live feed over 1,000 providers and 10,000 waiters: when nothing has happened, when
// one lease went to the next waiter and another request came, when a tenth of the queue is another one, and the whole that
// a newcomer gets. lock-ns is how long the machine's read lock is held.
func BenchmarkLiveTick(b *testing.B) {
	for _, x := range []struct {
		name  string
		turns int
		whole bool
	}{{"idle", 0, false}, {"one", 1, false}, {"tenth", 1000, false}, {"whole", 1, true}} {
		b.Run(x.name, func(b *testing.B) {
			c := crowd(b)
			feed := admin.NewFeed(admin.Options{Source: source{c}, Edge: "edge-1"}, time.Second)
			now := time.Unix(1_800_000_000, 0)
			_, seen, err := feed.Next(0, now)
			if err != nil {
				b.Fatal(err)
			}
			bytes, lease := 0, fsm.LeaseID(0)
			c.locked = 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for range x.turns {
					lease++
					c.do(c.session, &fsm.Release{Lease: lease, Reason: fsm.ReasonDone})
					c.admit(fmt.Sprintf("later-%08d", lease), int(lease)%4)
				}
				now = now.Add(time.Second)
				if x.whole {
					seen = 0
				}
				b.StartTimer()
				events, seq, err := feed.Next(seen, now)
				if err != nil {
					b.Fatal(err)
				}
				seen, bytes = seq, len(events[0])
			}
			b.ReportMetric(float64(c.locked.Nanoseconds())/float64(b.N), "lock-ns/op")
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}

// source is a crowd as a source.
type source struct{ *crowded }

// Watch is not used.
func (source) Watch(context.Context, int) <-chan fsm.Effect { return nil }
