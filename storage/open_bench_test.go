package storage

import (
	"fmt"
	"testing"

	"iop/fsm"
)

// BenchmarkOpen measures opening a directory with 10,000 waiters and leases, half of them in the log behind a snapshot, and
// with a large log behind it.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := openWith(b, Options{Dir: dir, Replica: "e1"})
	x := running(b, s, world(16, 300), nil)
	answers := make(chan struct{}, 256)
	answer := funcReceiver(func(fsm.Outcome, error) { <-answers })
	propose := func(n int, cmd func(i int) fsm.Command) {
		for i := range n {
			answers <- struct{}{}
			x.Propose(cmd(i), answer)
		}
		for range cap(answers) {
			answers <- struct{}{}
		}
		for range cap(answers) {
			<-answers
		}
	}
	propose(5000, func(i int) fsm.Command { return admit(fmt.Sprintf("%0128d", i)) })
	propose(400_000, func(i int) fsm.Command { return &fsm.Cancel{Request: fsm.RequestID(fmt.Sprintf("x%0127d", i))} })
	if err := s.log.snapshot(); err != nil {
		b.Fatal(err)
	}
	propose(5000, func(i int) fsm.Command { return admit(fmt.Sprintf("y%0127d", i)) })
	size, entries := s.Stats().LogFileBytes, s.Stats().LastIndex
	closeStore(b, s)
	b.ResetTimer()
	for range b.N {
		s = openWith(b, Options{Dir: dir, Replica: "e1"})
		b.StopTimer()
		closeStore(b, s)
		b.StartTimer()
	}
	b.ReportMetric(float64(size>>20), "MiB-log")
	b.ReportMetric(float64(entries), "entries")
}
