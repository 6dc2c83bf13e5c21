package edged

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"iop/storage"
)

// A replica that started while its cluster had no leader ended with an error instead of waiting for one.
func TestStartWaitsForALeader(t *testing.T) {
	tries := 0
	err := patiently(t.Context(), func() error {
		if tries++; tries < 3 {
			return fmt.Errorf("offer configuration: %w", []error{storage.ErrNoLeader, storage.ErrOverloaded}[tries-1])
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}
	broken := errors.New("disk full")
	if err := patiently(t.Context(), func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("another fault: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := patiently(ctx, func() error { return storage.ErrNoLeader }); !errors.Is(err, context.Canceled) {
		t.Errorf("a stop meanwhile: %v", err)
	}
}
