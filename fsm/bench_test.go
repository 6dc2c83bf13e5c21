package fsm_test

import (
	"fmt"
	"testing"

	. "iop/fsm"
)

// benchWorld is a machine with a session and ready nodes, fed with one command per entry or in batches.
type benchWorld struct {
	b       *testing.B
	m       *Machine
	session SessionID
	seq     uint64
	entry   Entry
	batch   [1]Batch
}

// benchConfig has so many providers, eight to a node, and models with so many candidates each.
func benchConfig(providers, models, candidates, capacity, maxQueue int) Config {
	c := Config{Pool: Pool{MaxQueue: maxQueue, QueueTimeout: 1000 * Second, FenceTimeout: Second, ReattachWindow: Second}}
	for i := range providers {
		if i%8 == 0 {
			c.Nodes = append(c.Nodes, NodeID(fmt.Sprintf("node-%03d", i/8)))
		}
		c.Providers = append(c.Providers, ProviderConfig{
			ID: ProviderID(fmt.Sprintf("provider-%04d", i)), Node: c.Nodes[i/8], Capacity: capacity,
			LongCapacity: LongUncounted, Enabled: true, Can: AllNeeds, ContextWindow: 100_000,
		})
	}
	for i := range models {
		m := ModelConfig{ID: ModelID(fmt.Sprintf("model-%03d", i))}
		for j := range candidates {
			p := c.Providers[(i*candidates+j)%providers]
			m.Candidates = append(m.Candidates, Candidate{Provider: p.ID, Served: "served-" + string(m.ID)})
		}
		c.Models = append(c.Models, m)
	}
	return c
}

func newBenchWorld(b *testing.B, c Config) *benchWorld {
	w := &benchWorld{b: b, m: New()}
	w.entry = Entry{Term: 1}
	w.apply(&ApplyConfig{Config: c})
	w.session = w.apply(&OpenSession{Edge: "edge-1", Nonce: 1}).Outcomes[0][0].Session
	for _, n := range c.Nodes {
		w.apply(&RegisterNode{Node: n, Instance: 1})
		w.apply(&NodeReady{Node: n, Generation: 1})
	}
	return w
}

// apply is one entry with one batch.
func (w *benchWorld) apply(cs ...Command) Result {
	w.entry.Index++
	w.entry.Elapsed += Microsecond
	w.batch[0] = Batch{Session: w.session, Commands: cs}
	if w.session != 0 {
		w.seq++
		w.batch[0].Seq, w.batch[0].AckBelow = w.seq, w.seq
	}
	w.entry.Batches = w.batch[:]
	return w.m.Apply(&w.entry)
}

// admits makes admissions of as many different requests, spread over the models.
func admits(c Config, count int) []*Admit {
	as := make([]*Admit, count)
	for i := range as {
		as[i] = &Admit{
			Request: RequestID(fmt.Sprintf("req-%08x", i)), Model: c.Models[i%len(c.Models)].ID, InputTokens: 1000,
			Needs: NeedChat, Fingerprint: Fingerprint{byte(i), byte(i >> 8), byte(i >> 16), 1},
		}
	}
	return as
}

// BenchmarkAdmitRelease is the whole cost of a request that finds a free slot: 64 providers, 16 models. One pair per
// operation; "entries" puts each command into an entry of its own, "batches" puts 64 into one, as group commit does
// under load.
func BenchmarkAdmitRelease(b *testing.B) {
	c := benchConfig(64, 16, 4, 8, 1000)
	b.Run("entries", func(b *testing.B) {
		w, as := newBenchWorld(b, c), admits(c, 1024)
		release := &Release{Reason: ReasonDone}
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			o := w.apply(as[i%len(as)]).Outcomes[0][0]
			if o.Code != Granted {
				b.Fatal(o)
			}
			release.Lease = o.Grant.Lease
			w.apply(release)
		}
		w.report(b, 0)
	})
	b.Run("batches", func(b *testing.B) {
		const size = 64
		w, as := newBenchWorld(b, c), admits(c, 1024)
		admit, release := make([]Command, size), make([]Command, size)
		for i := range release {
			release[i] = &Release{Reason: ReasonDone}
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := 0; i < b.N; i += size {
			for j := range admit {
				admit[j] = as[(i+j)%len(as)]
			}
			for j, o := range w.apply(admit...).Outcomes[0] {
				release[j].(*Release).Lease = o.Grant.Lease
			}
			w.apply(release...)
		}
		w.report(b, 0)
	})
}

// report tells pairs per second, and that the world is as it must be after them.
func (w *benchWorld) report(b *testing.B, pending int) {
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	if w.m.Pending() != pending {
		b.Fatalf("%d wait, want %d", w.m.Pending(), pending)
	}
	if err := w.m.Check(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkQueue keeps so many waiters in the queue: each operation admits one at the tail and releases a lease, which
// grants the first that can have the slot. The cost must not grow with the number of waiters.
func BenchmarkQueue(b *testing.B) {
	for _, waiters := range []int{10, 100, 10_000, 100_000} {
		b.Run(fmt.Sprint("waiters=", waiters), func(b *testing.B) {
			c := benchConfig(64, 16, 16, 1, waiters+1)
			w, as := newBenchWorld(b, c), admits(c, (waiters+143)/16*16) // a multiple of the models, so that each round is like the one before
			var held []LeaseID
			for _, a := range as[:waiters+64] {
				if o := w.apply(a).Outcomes[0][0]; o.Code == Granted {
					held = append(held, o.Grant.Lease)
				}
			}
			if len(held) != 64 || w.m.Pending() != waiters {
				b.Fatalf("%d leases, %d waiters", len(held), w.m.Pending())
			}
			next := waiters + 64
			release := &Release{Reason: ReasonDone}
			cs := make([]Command, 2)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				release.Lease = held[i%64]
				cs[0], cs[1] = as[next], release
				if next++; next == len(as) {
					next = 0
				}
				res := w.apply(cs...)
				if len(res.Effects) != 1 || res.Outcomes[0][0].Code != Queued {
					b.Fatalf("outcomes %v, effects %v", res.Outcomes, res.Effects)
				}
				held[i%64] = res.Effects[0].Grant.Lease
			}
			w.report(b, waiters)
		})
	}
}

// BenchmarkApplyConfig replaces a large configuration under load: 1,000 providers, 200 models, 1,000 waiters.
func BenchmarkApplyConfig(b *testing.B) {
	configs := []Config{benchConfig(1000, 200, 8, 1, 2000), benchConfig(1000, 200, 8, 1, 3000)}
	w, as := newBenchWorld(b, configs[0]), admits(configs[0], 2000)
	for _, a := range as {
		w.apply(a)
	}
	pending := w.m.Pending()
	b.ReportMetric(float64(pending), "waiters")
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if o := w.apply(&ApplyConfig{Config: configs[(i+1)%2], Force: true}).Outcomes[0][0]; o.Code != Applied {
			b.Fatal(o)
		}
	}
	b.StopTimer()
	if err := w.m.Check(); err != nil || w.m.Pending() != pending {
		b.Fatalf("%d wait, want %d; %v", w.m.Pending(), pending, err)
	}
}

// BenchmarkSnapshot is what a scrape costs with 64 providers and 10,000 waiters.
func BenchmarkSnapshot(b *testing.B) {
	c := benchConfig(64, 16, 16, 1, 10_000)
	w := newBenchWorld(b, c)
	for _, a := range admits(c, 10_064) {
		w.apply(a)
	}
	b.ReportAllocs()
	for b.Loop() {
		if w.m.Snapshot().Queue.Pending != 10_000 {
			b.Fatal("wrong")
		}
	}
}

// BenchmarkDigest is what comparing replicas, and much of what a snapshot, costs with 10,000 waiters.
func BenchmarkDigest(b *testing.B) {
	c := benchConfig(64, 16, 16, 1, 10_000)
	w := newBenchWorld(b, c)
	for _, a := range admits(c, 10_064) {
		w.apply(a)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.m.Digest()
	}
}

// BenchmarkApplyLargeConfig replaces a configuration of 1,000 nodes, 5,000 providers and 2,000 models with 10,000 waiters and
// 20,000 leases: by one with other bounds, and by one that raises every capacity, so that all waiters are granted at once.
func BenchmarkApplyLargeConfig(b *testing.B) {
	full, raised := largeConfig(4), largeConfig(6)
	other := largeConfig(4)
	other.Pool.MaxQueue++
	other.Pool.QueueTimeout *= 2
	for _, c := range []struct {
		name  string
		next  Config
		grant int
	}{{"same capacity", other, 0}, {"all are granted", raised, 10_000}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				w := newBenchWorld(b, full)
				for _, a := range admits(full, 30_000) {
					w.apply(a)
				}
				if s := w.m.Snapshot(); w.m.Pending() != 10_000 || s.Granted != 20_000 {
					b.Fatalf("%d wait, %d granted", w.m.Pending(), s.Granted)
				}
				b.StartTimer()
				res := w.apply(&ApplyConfig{Config: c.next, Force: true})
				b.StopTimer()
				if o := res.Outcomes[0][0]; o.Code != Applied || w.m.Pending() != 10_000-c.grant {
					b.Fatalf("%v, %d wait", o, w.m.Pending())
				}
				if err := w.m.Check(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// largeConfig has 5 providers to a node; each provider serves 2 models, each model has 5 candidates.
func largeConfig(capacity int) Config {
	c := Config{Pool: Pool{MaxQueue: 20_000, QueueTimeout: 1000 * Second, FenceTimeout: Second, ReattachWindow: Second}}
	for i := range 5000 {
		if i%5 == 0 {
			c.Nodes = append(c.Nodes, NodeID(fmt.Sprintf("node-%04d", i/5)))
		}
		c.Providers = append(c.Providers, ProviderConfig{
			ID: ProviderID(fmt.Sprintf("provider-%04d", i)), Node: c.Nodes[i/5], Capacity: capacity,
			LongCapacity: LongUncounted, Enabled: true, Can: AllNeeds, ContextWindow: 100_000,
		})
	}
	for i := range 2000 {
		m := ModelConfig{ID: ModelID(fmt.Sprintf("model-%04d", i))}
		for j := range 5 {
			m.Candidates = append(m.Candidates, Candidate{Provider: c.Providers[(i*5+j)%5000].ID, Served: "served"})
		}
		c.Models = append(c.Models, m)
	}
	return c
}
