package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/goleak"

	"iop/fsm"
)

const (
	diskEnv     = "IOP_STORAGE_TEST_DISK"
	diskRootEnv = "IOP_STORAGE_TEST_DISK_ROOT"
)

// diskChild is the process whose calls a test sees: everything that it prints becomes part of what the test sees, in
// order with the writes.
func diskChild() bool {
	mode, root := os.Getenv(diskEnv), os.Getenv(diskRootEnv)
	if mode == "" {
		return false
	}
	if err := superviseMe(); err != nil {
		fmt.Fprintln(os.Stderr, "supervise:", err)
		return true
	}
	switch mode {
	case "lives":
		if err := twoLives(root); err != nil {
			fmt.Println("error", err)
		}
	case "faults":
		for n := 1; mayGoOn(); n++ {
			faultyLife(filepath.Join(root, fmt.Sprint(n), "data"))
		}
	}
	return true
}

// diskOptions take snapshots only when told, and cut the log after each.
func diskOptions(dir string) Options {
	return Options{Dir: dir, Replica: "e1", Version: "v1", History: History{MaxBytes: 1}, keepEntries: 6, snapshotEach: 1 << 40}
}

// client makes a store work, one command after the other, and prints what was acknowledged:
//
//	ack INDEX DIGEST
type client struct {
	store   *Store
	session *Session
	leases  []fsm.LeaseID
}

func (c *client) acknowledged() {
	c.store.View(func(m *fsm.Machine) { fmt.Printf("ack %d %x\n", m.Index(), m.Digest()) })
}

func (c *client) start(ctx context.Context) error {
	o, err := c.store.Do(ctx, world(1, 1000))
	if err != nil || o.Code != fsm.Applied {
		return fmt.Errorf("config: %v %w", o.Code, err)
	}
	c.acknowledged()
	if _, err = c.store.Do(ctx, &fsm.RaiseLevel{Level: 4}); err != nil {
		return err
	}
	c.acknowledged()
	if c.session, err = c.store.OpenSession(ctx, "e1", nil); err != nil {
		return err
	}
	c.acknowledged()
	if o, err = c.session.Do(ctx, &fsm.RegisterNode{Node: "n1", Instance: 7}); err != nil {
		return err
	}
	c.acknowledged()
	if _, err = c.session.Do(ctx, &fsm.NodeReady{Node: "n1", Generation: o.Generation}); err != nil {
		return err
	}
	c.acknowledged()
	return nil
}

// round admits, and releases every other lease.
func (c *client) round(ctx context.Context, i int) error {
	o, err := c.session.Do(ctx, admit(fmt.Sprintf("%d-%d", c.session.ID(), i)))
	if err != nil || o.Code != fsm.Granted {
		return fmt.Errorf("admit: %v %w", o.Code, err)
	}
	c.acknowledged()
	c.leases = append(c.leases, o.Grant.Lease)
	if i%2 == 0 {
		return c.respond(ctx, i)
	}
	if o, err = c.session.Do(ctx, &fsm.Release{Lease: c.leases[i/2]}); err != nil || o.Code != fsm.Returned {
		return fmt.Errorf("release: %v %w", o.Code, err)
	}
	c.acknowledged()
	return nil
}

// respond submits a background response, says something, ends every other one, and forgets the one before the last.
func (c *client) respond(ctx context.Context, i int) error {
	name := func(i int) string { return fmt.Sprintf("x%d-%d", c.session.ID(), i) }
	list := []fsm.Command{submit(name(i)), nil, nil}
	if i%4 == 0 {
		list = list[:2]
	}
	if i >= 4 {
		list = append(list, &fsm.Forget{Response: fsm.ResponseID(name(i - 4))})
	}
	for j, cmd := range list {
		switch {
		case cmd != nil:
		case j == 1:
			cmd = say(c.store, name(i), 1, fsm.ResponseInProgress)
		default:
			cmd = say(c.store, name(i), 2, fsm.ResponseCompleted)
		}
		o, err := c.session.Do(ctx, cmd)
		if err != nil || o.Code != fsm.Queued && o.Code != fsm.Done {
			return fmt.Errorf("response %d: %v %w", j, o.Code, err)
		}
		c.acknowledged()
	}
	return nil
}

// life is a start, some work with snapshots and compaction, and an orderly stop.
func life(dir string, rounds int) error {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	s, err := Open(ctx, diskOptions(dir))
	if err != nil {
		return err
	}
	fmt.Println("open")
	work := func() error {
		c := &client{store: s}
		if err := c.start(ctx); err != nil {
			return err
		}
		snapshots := make(chan error, 1)
		for i := range rounds {
			if i%4 == 1 { // beside the work
				go func() { snapshots <- s.log.snapshot() }()
			}
			if err := c.round(ctx, i); err != nil {
				return err
			}
			if i%4 == 1 {
				if err := <-snapshots; err != nil {
					fmt.Println("snapshot failed:", err)
				}
			}
		}
		return nil
	}
	err = work()
	if s.Err() != nil {
		err = s.Err() // it says why
	}
	return errors.Join(err, s.Close(ctx))
}

func twoLives(root string) error {
	dir := filepath.Join(root, "data")
	return errors.Join(life(dir, 24), life(dir, 8))
}

// faultyLife is a life in which one call fails. It prints how it went:
//
//	begin DIR    from here on, one call is going to fail
//	life ERROR   the error names file and cure, or is "nil"
//	wrong …      what should not be
//	end
func faultyLife(dir string) {
	fmt.Println("begin", dir)
	err := life(dir, 4)
	fmt.Println("life", strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
	if err := goleak.Find(); err != nil {
		fmt.Println("wrong", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	s, err := Open(ctx, diskOptions(dir))
	if err != nil {
		fmt.Println("wrong", "the next start:", err)
		return
	}
	s.View(func(m *fsm.Machine) {
		if err := m.Check(); err != nil {
			fmt.Println("wrong", err)
		}
		fmt.Printf("state %d %x\n", m.Index(), m.Digest())
	})
	err = (&client{store: s}).start(ctx)
	if err = errors.Join(err, s.Close(ctx)); err != nil {
		fmt.Println("wrong", "the next life:", err)
	}
	fmt.Println("end")
}
