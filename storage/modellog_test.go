package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"iop/fsm"
)

// modelLog is a consensus in memory that loses answers and leadership as the test likes.
type modelLog struct {
	machine stateMachine
	changed chan struct{}

	mu      sync.Mutex
	index   uint64
	current uint64
	lead    bool
	late    [][]byte // entries whose proposer was told "unknown" and that are applied with the next one
	// verdict decides on an entry: applied and answered; applied but the answer is lost; not applied; applied later.
	verdict func(entry []byte) verdict
	gate    chan struct{} // if not nil, an entry waits here
}

type verdict int

const (
	answered verdict = iota
	answerLost
	entryLost
	entryLate
)

var errUnknown = errors.New("outcome unknown")

func (l *modelLog) propose(entry []byte) error {
	if l.gate != nil {
		<-l.gate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lead {
		return errNotLeading
	}
	v := answered
	if l.verdict != nil {
		v = l.verdict(entry)
	}
	switch v {
	case entryLost:
		return errUnknown
	case entryLate:
		l.late = append(l.late, entry)
		return errUnknown
	}
	for _, e := range append(l.late, entry) {
		l.index++
		l.machine.apply(l.index, l.current, e)
	}
	l.late = nil
	if v == answerLost {
		return errUnknown
	}
	return nil
}

func (l *modelLog) barrier() error { return nil }

func (l *modelLog) term() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

func (l *modelLog) leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lead
}

func (l *modelLog) changes() <-chan struct{} { return l.changed }

func (l *modelLog) lastIndex() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.index
}

func (l *modelLog) snapshot() error            { return nil }
func (l *modelLog) stop(context.Context) error { return nil }

func (l *modelLog) setLead(lead bool) {
	l.mu.Lock()
	l.lead = lead
	if lead {
		l.current++
	}
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// onModel returns a store over a model log.
func onModel(t *testing.T, prepare func(*modelLog)) (*Store, *modelLog) {
	t.Helper()
	o, err := Options{Dir: t.TempDir(), Replica: "e1", Logger: testLogger(t)}.complete()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := openDirectory(o.Dir, o.Replica, o.Version)
	if err != nil {
		t.Fatal(err)
	}
	s := assemble(o, dir)
	l := &modelLog{machine: s.replica, changed: make(chan struct{}, 1), lead: true, current: 1}
	if prepare != nil {
		prepare(l)
	}
	s.log, s.batcher.log = l, l
	go s.batcher.run()
	<-s.batcher.ready
	go s.snapshots.run()
	t.Cleanup(func() { closeStore(t, s) })
	return s, l
}

// TestUnknownOutcomesAreSentAgain: whichever way an entry gets lost, each command takes effect once, and its proposer
// gets its true outcome once.
func TestUnknownOutcomesAreSentAgain(t *testing.T) {
	n := 0
	s, _ := onModel(t, func(l *modelLog) {
		l.verdict = func([]byte) verdict {
			n++
			return []verdict{answered, answerLost, entryLost, entryLate, entryLate, answerLost}[n%6]
		}
	})
	x := running(t, s, world(1, 1000), nil)
	var wait sync.WaitGroup
	granted := make([]int, 300)
	for i := range granted {
		wait.Add(1)
		x.Propose(admit(fmt.Sprint("r", i)), funcReceiver(func(o fsm.Outcome, err error) {
			if err == nil && o.Code == fsm.Granted {
				granted[i]++
			}
			wait.Done()
		}))
		if i%7 == 0 {
			must(t, x, &fsm.Cancel{Request: "none"}, fsm.Unknown)
		}
	}
	wait.Wait()
	for i, n := range granted {
		if n != 1 {
			t.Errorf("request %d was granted %d times", i, n)
		}
	}
	s.View(func(m *fsm.Machine) {
		if n := len(m.Leases()); n != len(granted) {
			t.Errorf("%d leases, want %d", n, len(granted))
		}
	})
	checked(t, s)
	if n, _ := s.queue.figures(); n != 0 {
		t.Errorf("%d bytes count as queued when all is answered", n)
	}
}

// TestLeadershipComesBack: what is proposed without a leader waits, and what was under way is sent again.
func TestLeadershipComesBack(t *testing.T) {
	s, l := onModel(t, nil)
	x := running(t, s, world(1, 10), nil)
	l.setLead(false)
	w := newWaiter()
	x.Propose(admit("a"), w)
	s.View(func(m *fsm.Machine) {
		if _, ok := m.Request("a"); ok {
			t.Error("applied without a leader")
		}
	})
	if s.Role() != RoleFollower {
		t.Errorf("role %v", s.Role())
	}
	l.setLead(true)
	if o, err := w.wait(within(t)); err != nil || o.Code != fsm.Granted {
		t.Errorf("%v %v", o.Code, err)
	}
}

// TestQueueIsBounded: with the log stalled, requests are refused before they have an effect, and what gives slots back is not.
func TestQueueIsBounded(t *testing.T) {
	s, l := onModel(t, nil)
	x := running(t, s, world(1, 1), nil)
	l.mu.Lock()
	unlock := sync.OnceFunc(l.mu.Unlock)
	defer unlock()
	overloaded := make(chan error, 1)
	admitted := 0
	for ; admitted < 1<<20; admitted++ {
		x.Propose(&fsm.Admit{Request: fsm.RequestID(fmt.Sprintf("%0128d", admitted)), Model: "m"}, funcReceiver(func(_ fsm.Outcome, err error) {
			if err != nil {
				select {
				case overloaded <- err:
				default:
				}
			}
		}))
		if len(overloaded) > 0 {
			break
		}
	}
	if err := <-overloaded; !errors.Is(err, ErrOverloaded) {
		t.Fatal(err)
	}
	if bytes, _ := s.queue.figures(); bytes < queueBytesMax || bytes > queueBytesMax+1<<20 {
		t.Errorf("%d bytes queued", bytes)
	}
	released := newWaiter()
	x.Propose(&fsm.Release{Lease: 999}, released)
	unlock()
	if o, err := released.wait(within(t)); err != nil || o.Code != fsm.AlreadyReleased {
		t.Errorf("release while overloaded: %v %v", o.Code, err)
	}
	if _, n := s.queue.figures(); n == 0 {
		t.Error("not counted")
	}
}
