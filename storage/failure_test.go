package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"iop/fsm"
)

// faultyLog is a log file whose writes fail or hang when told to.
type faultyLog struct {
	logFile
	err  atomic.Pointer[error]
	hang chan struct{} // writes wait for it to be closed
	once atomic.Bool   // hanging
}

func (f *faultyLog) fault() error {
	if f.once.Load() {
		<-f.hang
	}
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *faultyLog) StoreLogs(l []*raft.Log) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.logFile.StoreLogs(l)
}

func (f *faultyLog) SetUint64(k []byte, v uint64) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.logFile.SetUint64(k, v)
}

func (f *faultyLog) Set(k, v []byte) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.logFile.Set(k, v)
}

func (f *faultyLog) breakWith(err error) { f.err.Store(&err) }

func failing(t *testing.T) (*faultyLog, Options) {
	f := &faultyLog{hang: make(chan struct{})}
	return f, Options{Dir: t.TempDir(), Replica: "e1", Logger: testLogger(t), wrap: func(l logFile) logFile {
		f.logFile = l
		return f
	}}
}

// tally counts answers.
type tally struct {
	mu   sync.Mutex
	errs map[error]int
	wait sync.WaitGroup
}

func (c *tally) propose(x *Session, cmd fsm.Command) {
	c.wait.Add(1)
	x.Propose(cmd, funcReceiver(func(_ fsm.Outcome, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.errs == nil {
			c.errs = map[error]int{}
		}
		c.errs[err]++
		c.wait.Done()
	}))
}

func failedWith(t *testing.T, s *Store, want error, cure string) {
	t.Helper()
	select {
	case <-s.Failed():
	case <-time.After(long):
		t.Fatal("it did not fail")
	}
	if err := s.Err(); !errors.Is(err, want) || !strings.Contains(err.Error(), cure) {
		t.Errorf("error %v, want %v and %q", err, want, cure)
	}
	if s.Role() != RoleStopped {
		t.Errorf("role %v", s.Role())
	}
}

// TestFailedWriteEndsTheStore: nobody gets an outcome, nothing more is written, and the directory opens with all that was
// acknowledged and nothing else.
func TestFailedWriteEndsTheStore(t *testing.T) {
	f, o := failing(t)
	s := openWith(t, o)
	c := newCollector()
	x := running(t, s, world(1, 2), c.take)
	must(t, x, admit("a"), fsm.Granted)
	want := digest(s)
	f.breakWith(syscall.EIO)
	var answers tally
	for i := range 100 {
		answers.propose(x, admit(fmt.Sprint("lost", i)))
	}
	answers.wait.Wait()
	if answers.errs[ErrFailed] != 100 {
		t.Errorf("answers %v", answers.errs)
	}
	failedWith(t, s, syscall.EIO, "check the disk")
	f.err.Store(nil) // the disk works again: that must not matter
	if _, err := x.Do(within(t), admit("later")); !errors.Is(err, ErrFailed) {
		t.Errorf("after the failure: %v", err)
	}
	if _, err := s.OpenSession(within(t), "e1", nil); !errors.Is(err, ErrFailed) {
		t.Errorf("session after the failure: %v", err)
	}
	closeStore(t, s)
	if s = openAt(t, o.Dir); digest(s) != want {
		t.Error("the state is not what was acknowledged")
	}
	checked(t, s)
}

// TestHungWriteEndsTheStore: a write that does not return counts as failed, also when it returns later.
func TestHungWriteEndsTheStore(t *testing.T) {
	f, o := failing(t)
	o.hungAfter = 100 * time.Millisecond
	s := openWith(t, o)
	x := running(t, s, world(1, 2), nil)
	must(t, x, admit("a"), fsm.Granted)
	f.once.Store(true)
	var answers tally
	answers.propose(x, admit("b"))
	failedWith(t, s, errHung, "check the disk")
	answers.wait.Wait()
	if answers.errs[ErrFailed] != 1 {
		t.Errorf("answers %v", answers.errs)
	}
	close(f.hang) // it returns after all, with success
	s.View(func(m *fsm.Machine) {
		if _, ok := m.Request("b"); ok {
			t.Error("what was answered as failed was applied")
		}
	})
	// Close leaves the file to the end of the process, since the write may still be under way; this process goes on.
	if err := s.Close(within(t)); !errors.Is(err, errHung) {
		t.Errorf("close: %v", err)
	}
	if err := s.log.stop(within(t)); err != nil {
		t.Error(err)
	}
	close(s.batcher.quit)
	<-s.batcher.done
	if err := errors.Join(s.file.Close(), s.dir.close()); err != nil {
		t.Error(err)
	}
}

// TestFailureWhileOpening is told by Open; nothing panics.
func TestFailureWhileOpening(t *testing.T) {
	f, o := failing(t)
	s := openWith(t, o)
	must(t, running(t, s, world(1, 2), nil), admit("a"), fsm.Granted)
	want := digest(s)
	closeStore(t, s)
	f.breakWith(syscall.ENOSPC)
	_, err := Open(within(t), o)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Fatal(err)
	}
	if s = openAt(t, o.Dir); digest(s) != want {
		t.Error("another state")
	}
}

// TestNewerEntryEndsTheStore: an entry that this version can't read stops it with a clear error at the start, and
// nothing is applied in its place.
func TestNewerEntryEndsTheStore(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	must(t, running(t, s, world(1, 2), nil), admit("a"), fsm.Granted)
	if err := s.log.propose(appendUint(nil, 1, entryFormat+1)); err != nil {
		t.Fatal(err)
	}
	failedWith(t, s, ErrNewer, "entry format 2")
	closeStore(t, s)
	refusedOpen(t, Options{Dir: dir, Replica: "e1"}, ErrNewer, "entry format 2", "run the version that wrote it")
	if _, _, err := Inspect(dir); !errors.Is(err, ErrNewer) {
		t.Errorf("inspect: %v", err)
	}
}

// TestCloseIsBounded: with the log stalled, Close gives up with its context.
func TestCloseIsBounded(t *testing.T) {
	f, o := failing(t)
	s := openWith(t, o)
	x := running(t, s, world(1, 2), nil)
	f.once.Store(true)
	var answers tally
	answers.propose(x, admit("a"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	answers.wait.Wait()
	if answers.errs[ErrClosed] != 1 {
		t.Errorf("answers %v", answers.errs)
	}
	close(f.hang)
	<-s.batcher.done
	if err := errors.Join(s.log.stop(within(t)), s.file.Close(), s.dir.close()); err != nil {
		t.Error(err)
	}
}
