package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// offlineOptions choose a stopped replica's files instead of an edge.
type offlineOptions struct {
	dataDir string
}

func (o *offlineOptions) register(c *cobra.Command) {
	c.Flags().StringVar(&o.dataDir, "data-dir", "", "read the data `directory` of a stopped or crashed replica instead; it is not changed")
	// The name is that of the flag just made.
	_ = c.MarkFlagDirname("data-dir")
}

// offlineLeases are the leases in a directory. Ages are those at the last entry, when time stopped for it.
func offlineLeases(dir string) (*adminapi.LeaseList, error) {
	m, _, err := storage.Inspect(dir)
	if err != nil {
		return nil, err
	}
	held := m.Leases()
	out := &adminapi.LeaseList{Leases: make([]adminapi.Lease, 0, len(held))}
	for i := range held {
		out.Leases = append(out.Leases, leaseOf(&held[i], m.Now()))
	}
	return out, nil
}

// offlineLease takes a lease's id or its request's.
func offlineLease(dir, id string) (*adminapi.LeaseDetail, error) {
	m, _, err := storage.Inspect(dir)
	if err != nil {
		return nil, err
	}
	var v fsm.RequestView
	found := false
	if n, err := strconv.ParseUint(id, 10, 64); err == nil {
		v, found = m.Lease(fsm.LeaseID(n))
	}
	if !found {
		v, found = m.Request(fsm.RequestID(id))
	}
	if !found || v.Lease == 0 {
		return nil, &faultError{
			code: ExitFailure,
			err:  fmt.Errorf("no lease or request %q holds a slot at index %d of %s", id, m.Index(), dir),
			cure: "'iopctl leases list --data-dir " + dir + "' lists those that do",
		}
	}
	return leaseDetailOf(&v, m.Now()), nil
}

func leaseOf(v *fsm.RequestView, now fsm.Time) adminapi.Lease {
	return adminapi.Lease{
		ID:           uint64(v.Lease),
		Request:      string(v.ID),
		Model:        string(v.Model),
		Provider:     string(v.Provider),
		Node:         string(v.Node),
		Class:        v.Class.String(),
		State:        v.State.String(),
		Edge:         string(v.Edge),
		Session:      uint64(v.Session),
		Generation:   uint64(v.Generation),
		GrantedIndex: v.GrantedIndex,
		AgeMS:        int64((now - v.GrantedAt) / fsm.Millisecond),
	}
}

func leaseDetailOf(v *fsm.RequestView, now fsm.Time) *adminapi.LeaseDetail {
	excluded := make([]string, 0, len(v.Excluded))
	for _, p := range v.Excluded {
		excluded = append(excluded, string(p))
	}
	return &adminapi.LeaseDetail{
		Lease:         leaseOf(v, now),
		Served:        v.Served,
		GrantedAt:     time.Unix(0, v.GrantedWall).UTC(),
		Enqueue:       uint64(v.Enqueue),
		EnqueuedIndex: v.EnqueuedIndex,
		EnqueuedAt:    time.Unix(0, v.EnqueuedWall).UTC(),
		WaitedMS:      int64((v.GrantedAt - v.EnqueuedAt) / fsm.Millisecond),
		InputTokens:   v.InputTokens,
		Excluded:      excluded,
	}
}
