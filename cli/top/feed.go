package top

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"iop/edged/adminapi"
)

// Pauses between calls that fail.
const (
	retryFirst = 250 * time.Millisecond
	retryMost  = 5 * time.Second
)

// still is what there was at one frame. It is never changed.
type still struct {
	head      adminapi.Frame
	members   []adminapi.LiveMember
	providers []adminapi.Provider
	nodes     []adminapi.Node
	leases    []adminapi.LiveLease
	waiters   []adminapi.LiveWaiter
	seconds   []adminapi.Sample // the newest last
	at        time.Time         // when it came, by the clock of this machine
}

// lost says that the feed broke off.
type lost struct {
	err error
	at  time.Time
}

// feed keeps a feed up and turns its frames into stills.
type feed struct {
	live func(context.Context, func(*adminapi.Frame) error) error
	now  func() time.Time
	news chan any // *still, *lost
}

// run calls for the feed again and again until ctx ends.
func (f *feed) run(ctx context.Context) {
	pause := retryFirst
	for ctx.Err() == nil {
		var picture adminapi.Picture
		err := f.live(ctx, func(frame *adminapi.Frame) error {
			if err := picture.Apply(frame); err != nil {
				return err
			}
			pause = retryFirst
			return f.tell(ctx, take(&picture, f.now()))
		})
		// After a gap a new call begins with a whole, and nobody needs to know.
		if !errors.Is(err, adminapi.ErrGap) && f.tell(ctx, &lost{err: err, at: f.now()}) != nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, retryMost)
	}
}

// tell waits until the news is taken: a terminal that is slow slows its own feed.
func (f *feed) tell(ctx context.Context, news any) error {
	select {
	case f.news <- news:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next is nil when ctx has ended.
func (f *feed) next(ctx context.Context) any {
	select {
	case n := <-f.news:
		if ctx.Err() != nil {
			return nil
		}
		return n
	case <-ctx.Done():
		return nil
	}
}

func (f *feed) deliver(ctx context.Context, send func(tea.Msg)) {
	for n := f.next(ctx); n != nil; n = f.next(ctx) {
		send(n)
	}
}

// take makes a still of a picture that goes on changing.
func take(p *adminapi.Picture, at time.Time) *still {
	return &still{
		head: p.Head, members: p.Members, providers: p.Providers(), nodes: p.Nodes(), leases: p.Leases(), waiters: p.Waiters(),
		seconds: slices.Clone(p.Seconds()), at: at,
	}
}
