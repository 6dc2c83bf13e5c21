package edged

import (
	"context"
	"errors"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// past is what the admin listener tells of this replica's history.
type past struct{ store *storage.Store }

func (p past) At(ctx context.Context, index uint64, t time.Time) (*fsm.Machine, error) {
	h, err := p.store.Past()
	if err != nil {
		return nil, err
	}
	if index == 0 {
		if index, err = h.IndexAt(ctx, t); err != nil {
			return nil, err
		}
	}
	return h.At(ctx, index)
}

func (p past) Story(ctx context.Context, request fsm.RequestID, lease fsm.LeaseID, since uint64) (*adminapi.Story, error) {
	h, err := p.store.Past()
	if err != nil {
		return nil, err
	}
	s, err := h.Story(ctx, storage.Subject{Request: request, Lease: lease, Since: since})
	if errors.Is(err, storage.ErrUnreachable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &adminapi.Story{
		Lines: make([]adminapi.StoryLine, 0, len(s.Lines)), From: s.From, To: s.To, Complete: s.Complete, Dropped: s.Dropped,
	}
	for _, l := range s.Lines {
		out.Lines = append(out.Lines, adminapi.StoryLine(l))
	}
	return out, nil
}
