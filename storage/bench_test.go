package storage

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/fsm"
)

// BenchmarkPairs measures durable admit+release pairs/s at a number of concurrent callers, each of which waits for its
// admission, and goes on when it has proposed the release.
func BenchmarkPairs(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchPairs(b, callers) })
	}
}

func benchPairs(b *testing.B, callers int) {
	s := openWith(b, Options{Dir: b.TempDir(), Replica: "e1"})
	x := running(b, s, world(8, callers), nil)
	pairs(b, callers, x)
	st := s.Stats()
	b.ReportMetric(float64(st.Commands)/float64(st.Entries), "commands/entry")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(st.Entries), "us/entry")
}

// BenchmarkSinglePairs is BenchmarkPairs of a replica that can have others and has none: what every edge with a cluster
// listener is.
func BenchmarkSinglePairs(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			c := newCluster(b, "e1").start()
			configure(b, c.leader(), world(8, callers))
			pairs(b, callers, runningAt(b, c.leader(), nil))
		})
	}
}

// BenchmarkReplicatedPairs is BenchmarkPairs with three replicas in this process, each with its own files and joined by
// TCP sockets: the callers are at the leader or at a follower.
func BenchmarkReplicatedPairs(b *testing.B) {
	for _, at := range []string{"leader", "follower"} {
		for _, callers := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("at=%s/callers=%d", at, callers), func(b *testing.B) { benchReplicated(b, at, callers) })
		}
	}
}

func benchReplicated(b *testing.B, at string, callers int) {
	c := newCluster(b, "e1", "e2", "e3").start()
	l := c.leader()
	s := l
	if at == "follower" {
		s = c.follower()
	}
	configure(b, l, world(8, callers))
	x := runningAt(b, s, nil)
	before := l.Stats()
	pairs(b, callers, x)
	st := l.Stats()
	b.ReportMetric(float64(st.Commands-before.Commands)/float64(st.Entries-before.Entries), "commands/entry")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(st.Entries-before.Entries), "us/entry")
}

// pairs has callers admit and release b.N times in all.
func pairs(b *testing.B, callers int, x *Session) {
	var next atomic.Int64
	var callerGroup, releases sync.WaitGroup
	done := funcReceiver(func(o fsm.Outcome, err error) {
		if err != nil || o.Code != fsm.Returned {
			b.Errorf("release: %v %v", o.Code, err)
		}
		releases.Done()
	})
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		callerGroup.Go(func() {
			w := newWaiter()
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				x.Propose(admit(fmt.Sprintf("request-%d", n)), w)
				got := <-w.got
				if got.err != nil || got.outcome.Code != fsm.Granted {
					b.Errorf("admit: %v %v", got.outcome.Code, got.err)
					return
				}
				releases.Add(1)
				x.Propose(&fsm.Release{Lease: got.outcome.Grant.Lease, Reason: fsm.ReasonDone}, done)
			}
		})
	}
	callerGroup.Wait()
	releases.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}

// BenchmarkSequential measures the admission of a client that comes back some time after its release, as over a network:
// the release that lingers travels with the admission, instead of having it wait for a whole fsync.
func BenchmarkSequential(b *testing.B) {
	s := openWith(b, Options{Dir: b.TempDir(), Replica: "e1"})
	x := running(b, s, world(1, 1), nil)
	var waited time.Duration
	for i := range b.N {
		start := time.Now()
		o := must(b, x, admit(fmt.Sprint(i)), fsm.Granted)
		waited += time.Since(start)
		x.Propose(&fsm.Release{Lease: o.Grant.Lease}, funcReceiver(func(fsm.Outcome, error) {}))
		time.Sleep(300 * time.Microsecond)
	}
	b.ReportMetric(float64(waited.Microseconds())/float64(b.N), "us/admission")
	b.ReportMetric(float64(s.Stats().Entries)/float64(b.N), "entries/pair")
}
