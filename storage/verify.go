package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"iop/fsm"
)

// Replicas are compared at one place in the log: a command that changes nothing (fsm.DigestCheck with Index 0) marks it,
// and each replica that applies it takes the digest of its living state right after that entry. So nobody has to stop.

// Mark is a place in the log, drawn at random.
type Mark [32]byte

// atMark is the state of this replica at a mark.
type atMark struct {
	mark   Mark
	met    bool
	index  uint64
	digest [32]byte
	ready  chan struct{} // closed when index and digest are set
}

// marksMax is how many marks a replica remembers.
const marksMax = 16

// ErrNoMark says that a replica has not met the mark in the log.
var ErrNoMark = errors.New("it has not applied the entry at which replicas are compared")

// at returns what is known of a mark. Call with mu held.
func (d *digests) at(mark Mark) *atMark {
	for _, x := range d.marks {
		if x.mark == mark {
			return x
		}
	}
	if len(d.marks) >= marksMax {
		d.marks = append(d.marks[:0], d.marks[1:]...)
	}
	x := &atMark{mark: mark, ready: make(chan struct{})}
	d.marks = append(d.marks, x)
	return x
}

// marked takes a digest for each mark in an entry. Call while the machine does not change. A mark that was sent twice
// counts where it comes first.
func (d *digests) marked(e *fsm.Entry, image func() *fsm.Image) {
	for i := range e.Batches {
		if e.Batches[i].Session != 0 {
			continue
		}
		for _, c := range e.Batches[i].Commands {
			if c, ok := c.(*fsm.DigestCheck); ok && c.Index == 0 {
				d.meet(Mark(c.Digest), e.Index, image)
			}
		}
	}
}

func (d *digests) meet(mark Mark, index uint64, image func() *fsm.Image) {
	d.mu.Lock()
	x := d.at(mark)
	first := !x.met
	x.met = true
	d.mu.Unlock()
	if !first {
		return
	}
	img := image()
	d.group.Go(func() {
		x.index, x.digest = index, img.Digest()
		close(x.ready)
	})
}

// Digest returns the digest of this replica's state right after a mark, as soon as it has applied it: ErrNoMark if ctx
// ends first.
func (s *Store) Digest(ctx context.Context, mark Mark) (index uint64, digest [32]byte, err error) {
	d := s.replica.digests
	if d == nil {
		return 0, digest, ErrAlone
	}
	d.mu.Lock()
	x := d.at(mark)
	d.mu.Unlock()
	select {
	case <-x.ready:
		return x.index, x.digest, nil
	case <-ctx.Done():
		return 0, digest, fmt.Errorf("%w: %w", ErrNoMark, ctx.Err())
	case <-s.quit:
		return 0, digest, ErrClosed
	}
}

// Verified is what a comparison of all replicas at one index found.
type Verified struct {
	Index    uint64
	Replicas []VerifiedReplica // all members, by id
}

// VerifiedReplica is one replica's part; Err says why it has no digest.
type VerifiedReplica struct {
	Member
	Index  uint64 // of the mark in its log
	Digest [32]byte
	Err    error
}

// Verify compares the states of all members after one entry, which it writes. It needs a leader; replicas that don't
// answer until ctx ends are named with the reason.
func (s *Store) Verify(ctx context.Context) (*Verified, error) {
	if s.group == nil {
		r := VerifiedReplica{Member: s.Members()[0]}
		s.View(func(m *fsm.Machine) { r.Index, r.Digest = m.Index(), m.Digest() })
		return &Verified{Index: r.Index, Replicas: []VerifiedReplica{r}}, nil
	}
	mark := Mark{}
	if _, err := rand.Read(mark[:]); err != nil {
		return nil, fmt.Errorf("draw a mark: %w", err)
	}
	if err := s.mark(ctx, mark); err != nil {
		return nil, fmt.Errorf("mark a place in the log: %w", err)
	}
	out := &Verified{}
	for _, m := range s.Members() {
		out.Replicas = append(out.Replicas, VerifiedReplica{Member: m})
	}
	var wait sync.WaitGroup
	for i := range out.Replicas {
		r := &out.Replicas[i]
		wait.Go(func() {
			if r.ID == s.options.Replica {
				r.Index, r.Digest, r.Err = s.Digest(ctx, mark)
				out.Index = r.Index
				return
			}
			r.Index, r.Digest, r.Err = s.digestOf(ctx, r.Member, mark)
		})
	}
	wait.Wait()
	return out, nil
}

// levelWait is for how long a mark waits for the feature level: the leader raises it soon after the members have come.
const levelWait = 3 * lookEach

// mark writes a mark into the log.
func (s *Store) mark(ctx context.Context, mark Mark) error {
	for end := time.Now().Add(levelWait); ; {
		_, err := s.Do(ctx, &fsm.DigestCheck{Digest: mark})
		switch {
		case !errors.Is(err, ErrLevel):
			return err
		case time.Now().After(end) && s.group.log.leader() == "":
			return ErrNoLeader
		case time.Now().After(end):
			return err
		}
		select {
		case <-time.After(askEach):
		case <-ctx.Done():
			return err
		}
	}
}

// digestOf asks another replica. One that has just come up may not be reached at once: the way to it is tried for a while.
func (s *Store) digestOf(ctx context.Context, m Member, mark Mark) (index uint64, digest [32]byte, err error) {
	for end := time.Now().Add(transportTimeout); ; {
		index, digest, err = s.group.options.Network.Digest(ctx, m, mark)
		if err == nil || time.Now().After(end) {
			return index, digest, err
		}
		select {
		case <-time.After(askEach):
		case <-ctx.Done():
			return index, digest, err
		}
	}
}
