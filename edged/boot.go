package edged

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"iop/configs"
	"iop/edged/refresh"
	"iop/fsm"
	"iop/storage"
)

// offer makes the cluster part of the edge's file the configuration, if the file differs from what this edge offered
// last: so an unchanged file never rolls back what was refreshed meanwhile.
func offer(ctx context.Context, store *storage.Store, edge fsm.EdgeID, c *configs.Cluster) error {
	document := c.Canonical()
	hash := hashOf(document)
	var offered string
	store.View(func(m *fsm.Machine) { offered = m.Offer(edge) })
	if offered == hash {
		return nil
	}
	var o fsm.Outcome
	err := patiently(ctx, func() (err error) {
		o, err = store.Do(ctx, &fsm.ApplyConfig{
			Document: document, Config: refresh.Plan(c), Force: true, Edge: edge, Offer: hash,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("offer configuration: %w", err)
	}
	if o.Code != fsm.Applied {
		return errors.New("offer configuration: " + o.Code.String())
	}
	return nil
}

// bootPause is how long a start waits after a command that nobody could take.
const bootPause = 200 * time.Millisecond

// patiently tries again while there is no leader or too much to do: a start has time, and to end for it would only make
// others wait longer.
func patiently(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, storage.ErrNoLeader) && !errors.Is(err, storage.ErrOverloaded) {
			return err
		}
		timer := time.NewTimer(bootPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		}
	}
}

// hashOf is what an edge keeps of the file that it offered.
func hashOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// readView reads the machine's configuration.
func readView(store *storage.Store) (*view, error) {
	var document []byte
	var revision fsm.Revision
	store.View(func(m *fsm.Machine) { document, revision = m.Document(), m.Revision() })
	return newView(revision, document)
}
