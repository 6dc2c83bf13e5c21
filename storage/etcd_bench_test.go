package storage

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/fsm"
)

const (
	etcdRounds = 5 // of each of the two, in turn
	etcdRound  = time.Second
	etcdWarm   = 200 * time.Millisecond // before the first round, not counted
	etcdTries  = 3 * etcdRounds         // a round in which the leader moved is not counted
)

// BenchmarkEtcd is admission and release with three replicas beside etcd's lease grant and revoke with three members,
// in turns of a second on the same disk: the medians of the turns, and their ratio. It needs etcd on the PATH. Both
// wait for the disks of a majority; docs/BENCHMARKS.md says in what they differ.
func BenchmarkEtcd(b *testing.B) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		b.Skip("there is no etcd on the PATH to compare with (Debian: apt-get install etcd-server)")
	}
	ours := newAdmitters(b)
	theirs := startEtcd(b, program)
	for _, at := range []string{"leader", "follower"} {
		for _, callers := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("at=%s/callers=%d", at, callers), func(b *testing.B) { benchBeside(b, ours, theirs, at, callers) })
		}
	}
}

// lessor is what hands out leases and takes them back.
type lessor interface {
	grant() (lease uint64, err error)
	release(lease uint64, done chan<- error) // does not wait; done has room
}

// lessors are the replicas of a cluster. The leader of a cluster may move.
type lessors interface {
	find(b *testing.B, at string) (lessor, any) // the replica at the place, and who leads
}

// turns are what was measured of one of the two.
type turns struct{ pairs, grant []float64 } // per second; us

func benchBeside(b *testing.B, ours, theirs lessors, at string, callers int) {
	var iop, etcd turns
	b.ResetTimer()
	for i, c := range []lessors{ours, theirs} {
		x, _ := c.find(b, at)
		if _, _, err := drive(callers, etcdWarm, x); err != nil {
			b.Fatalf("cluster %d: %v", i, err)
		}
	}
	for try := 0; min(len(iop.pairs), len(etcd.pairs)) < etcdRounds; try++ {
		if try == etcdTries {
			b.Fatalf("the leader moved in too many of %d rounds", try)
		}
		iop.take(b, ours, at, callers)
		etcd.take(b, theirs, at, callers)
	}
	b.ReportMetric(0, "ns/op") // means nothing here
	b.ReportMetric(median(iop.pairs), "iop-pairs/s")
	b.ReportMetric(median(etcd.pairs), "etcd-pairs/s")
	b.ReportMetric(median(iop.pairs)/median(etcd.pairs), "iop/etcd")
	b.ReportMetric(median(iop.grant), "iop-us/grant")
	b.ReportMetric(median(etcd.grant), "etcd-us/grant")
	b.Logf("pairs/s by turn: iop %.0f, etcd %.0f", iop.pairs, etcd.pairs)
}

// take measures one turn, if the leader stays where it is meanwhile.
func (t *turns) take(b *testing.B, c lessors, at string, callers int) {
	x, before := c.find(b, at)
	pairs, grant, err := drive(callers, etcdRound, x)
	if _, after := c.find(b, at); after != before {
		b.Logf("the leader moved: not counted (%v)", err)
		return
	}
	if err != nil {
		b.Fatal(err)
	}
	t.pairs, t.grant = append(t.pairs, pairs), append(t.grant, grant)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// drive has callers take and give back leases for a while. Each waits for its grant and sends the release; it waits for
// that one when it has its next grant. It returns pairs per second and how many microseconds a grant took on average.
func drive(callers int, d time.Duration, x lessor) (pairs, grant float64, err error) {
	type tally struct {
		pairs  int
		waited time.Duration
		err    error
	}
	all := make([]tally, callers)
	var group sync.WaitGroup
	start := time.Now()
	for i := range all {
		group.Go(func() {
			var t tally
			t.pairs, t.waited, t.err = callFor(start.Add(d), x)
			all[i] = t
		})
	}
	group.Wait()
	elapsed := time.Since(start)
	var sum tally
	for _, t := range all {
		sum.pairs += t.pairs
		sum.waited += t.waited
		sum.err = errors.Join(sum.err, t.err)
	}
	return float64(sum.pairs) / elapsed.Seconds(), float64(sum.waited.Microseconds()) / float64(max(sum.pairs, 1)), sum.err
}

// callFor is one caller until end: it returns how many pairs it did, and how long it waited for their grants.
func callFor(end time.Time, x lessor) (pairs int, waited time.Duration, err error) {
	done := make(chan error, 1)
	for out := false; ; out = true {
		start := time.Now()
		if start.After(end) && out {
			return pairs, waited, <-done
		}
		lease, err := x.grant()
		waited += time.Since(start)
		if out {
			err = errors.Join(err, <-done)
		}
		if err != nil {
			return pairs, waited, err
		}
		x.release(lease, done)
		pairs++
	}
}

// admitters are three replicas of ours in this process, with files and sockets of their own.
type admitters struct {
	cluster *cluster
	at      map[*Store]*admitter
}

// admitter admits at one replica.
type admitter struct {
	session *Session
	last    atomic.Int64 // request's number
}

func newAdmitters(b *testing.B) *admitters {
	a := &admitters{cluster: newCluster(b, "e1", "e2", "e3").start(), at: map[*Store]*admitter{}}
	configure(b, a.cluster.leader(), world(8, 1024)) // more than all callers can hold: nobody queues
	for _, s := range a.cluster.running() {
		a.at[s] = &admitter{session: runningAt(b, s, nil)}
	}
	return a
}

func (a *admitters) find(b *testing.B, at string) (lessor, any) {
	b.Helper()
	l := a.cluster.leader()
	if at == "leader" {
		return a.at[l], l
	}
	return a.at[a.cluster.follower()], l
}

func (a *admitter) grant() (uint64, error) {
	w := newWaiter()
	a.session.Propose(admit(fmt.Sprintf("%s-%d", a.session.store.options.Replica, a.last.Add(1))), w)
	got := <-w.got
	if got.err != nil {
		return 0, fmt.Errorf("admit: %w", got.err)
	}
	if got.outcome.Code != fsm.Granted {
		return 0, fmt.Errorf("admit: %v", got.outcome.Code)
	}
	return uint64(got.outcome.Grant.Lease), nil
}

func (a *admitter) release(lease uint64, done chan<- error) {
	a.session.Propose(&fsm.Release{Lease: fsm.LeaseID(lease), Reason: fsm.ReasonDone}, funcReceiver(func(o fsm.Outcome, err error) {
		if err == nil && o.Code != fsm.Returned {
			err = fmt.Errorf("release: %v", o.Code)
		}
		done <- err
	}))
}
