package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Close ends the store in an orderly way: new commands get ErrClosed, those under way their outcome; a snapshot is
// written if many entries came since the last; then the directory is let go. ctx bounds it. After a failure it only
// lets go.
func (s *Store) Close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.queue.close(ErrClosed, false)
	var errs []error
	if s.Err() == nil {
		if err := s.drain(ctx); err != nil {
			errs = append(errs, fmt.Errorf("wait for commands under way: %w", err))
		}
	}
	if s.Err() == nil && s.group != nil {
		s.group.handOver(ctx)
	}
	if err := s.snapshots.stop(ctx); err != nil {
		errs = append(errs, err)
	} else if s.Err() == nil && s.log.lastIndex() > s.snapshots.taken.Load()+closeEntries {
		errs = append(errs, s.snapshots.take())
	}
	errs = append(errs, s.release(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}

// drain waits until all commands under way have their outcome. Without a leader they get none: then it is given up after as
// long as anybody waits for one, which is no fault of this replica.
func (s *Store) drain(ctx context.Context) error {
	if s.group == nil {
		return s.queue.drain(ctx, nil)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.queue.drain(waiting, nil) }()
	ticker := time.NewTicker(keepEach)
	defer ticker.Stop()
	for without := time.Duration(0); without < leaderless; {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			if without += keepEach; s.group.log.leader() != "" {
				without = 0
			}
		}
	}
	cancel()
	if err := <-done; err == nil {
		return nil // the last outcome came just now
	}
	s.logger.Warn("closed without a leader: commands under way have no outcome here")
	return nil
}

// release stops everything that runs and lets the directory go. If something does not return from the disk, it gives
// up when ctx ends and leaves file and lock to the end of the process.
func (s *Store) release(ctx context.Context) error {
	close(s.quit)
	if s.group != nil {
		s.group.quit()
	}
	err := s.stopLog(ctx)
	if s.group != nil {
		s.group.stop(err == nil)
	}
	s.abandon()
	if err != nil {
		if s.vault != nil {
			s.vault.abandon()
		}
		return err
	}
	if s.vault != nil {
		if err = s.vault.stop(s.replica.applied.Load()); err != nil {
			err = fmt.Errorf("%w%s", err, cureOf(err))
		}
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return errors.Join(err, s.dir.close())
}

// stopLog stops the proposer, then the log.
func (s *Store) stopLog(ctx context.Context) error {
	if s.log == nil {
		return nil
	}
	if errors.Is(s.Err(), errHung) {
		return s.cause
	}
	close(s.batcher.quit)
	select {
	case <-s.batcher.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for the entry under way: %w", ctx.Err())
	}
	return s.log.stop(ctx)
}

// abandon answers who still waits, and ends the goroutines that do not touch the disk.
func (s *Store) abandon() {
	why := ErrClosed
	if s.Err() != nil {
		why = ErrFailed
	}
	var h handover
	for _, b := range s.queue.close(why, true) {
		h.answers = append(h.answers, answer{batch: b, err: why})
	}
	s.out.hand(h)
	s.out.stop()
	s.watchers.stop()
	s.helper.Wait()
}
