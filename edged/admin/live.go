package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"iop/edged/adminapi"
)

// Bounds of the live feed.
const (
	viewersMax    = 256 // at the same time
	liveMinMS     = int(adminapi.LiveEveryMin / time.Millisecond)
	liveMaxMS     = int(adminapi.LiveEveryMax / time.Millisecond)
	liveDefaultMS = 1000
	livePart      = 64 << 10         // bytes that a viewer must take within liveWriteMax
	liveWriteMax  = 15 * time.Second // a viewer that takes less is cut off
	liveKeepalive = 15 * time.Second
)

// rhythms are those that a feed can have, in milliseconds; a viewer gets the next slower one, so that few are computed.
var rhythms = [...]int{250, 500, 1000, 2000, 5000, 10_000}

// live has the feeds, one for each rhythm.
type live struct {
	viewers atomic.Int64
	feeds   [len(rhythms)]feed
}

func newLive() *live {
	l := &live{}
	for i, ms := range rhythms {
		l.feeds[i].every = time.Duration(ms) * time.Millisecond
	}
	return l
}

// feedFor gives the feed for a wish, nil if it can't be had.
func (l *live) feedFor(wish string) *feed {
	ms := liveDefaultMS
	if wish != "" {
		var err error
		if ms, err = strconv.Atoi(wish); err != nil {
			return nil
		}
	}
	if ms < liveMinMS || ms > liveMaxMS {
		return nil
	}
	i := slices.IndexFunc(rhythms[:], func(r int) bool { return r >= ms })
	return &l.feeds[i]
}

// watchLive answers GET /live. The viewer's own goroutine does all that is done for it; one that does not read holds only
// itself up.
func (a *api) watchLive(w http.ResponseWriter, r *http.Request) {
	f := a.live.feedFor(r.URL.Query().Get("every"))
	if f == nil {
		writeError(w, badRequest(fmt.Sprintf("the query has every=%q", r.URL.Query().Get("every")),
			fmt.Sprintf("it is how often to look, %d to %d milliseconds", liveMinMS, liveMaxMS)))
		return
	}
	if a.live.viewers.Add(1) > viewersMax {
		a.live.viewers.Add(-1)
		writeError(w, &adminapi.Error{
			Code: "busy", Message: fmt.Sprintf("%d viewers are connected already", viewersMax),
			Cure: "close some, or read GET /status at intervals", Status: http.StatusServiceUnavailable,
		})
		return
	}
	defer a.live.viewers.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	f.enter()
	defer f.leave()
	v := &viewer{a: a, feed: f, actions: a.actions(r), stream: liveStream{w: w, control: http.NewResponseController(w)}}
	v.follow(r)
}

// viewer is one stream of a feed.
type viewer struct {
	a       *api
	feed    *feed
	actions string
	stream  liveStream
	seen    uint64
	sent    time.Time
}

func (v *viewer) follow(r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	asker := &asker{news: &v.a.members, cluster: v.a.Cluster}
	defer asker.asking.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.a.Stopping:
			_ = v.stream.send([]byte("event: " + adminapi.LiveBye + "\ndata: {}\n\n")) // it may have left
			return
		case <-timer.C:
		}
		asker.ask(ctx)
		if err := v.show(r); err != nil {
			return
		}
		timer.Reset(untilTick(time.Now(), v.feed.every))
	}
}

// untilTick is the time to the next tick, the same for all, and a little more, so that it is past then.
func untilTick(now time.Time, every time.Duration) time.Duration {
	return every - time.Duration(now.UnixNano()%int64(every)) + time.Millisecond
}

func (v *viewer) show(r *http.Request) error {
	frames, seen, err := v.feed.next(v.a, v.seen, time.Now())
	if err != nil {
		v.a.Logger.ErrorContext(r.Context(), "live feed", "error", err)
		return err
	}
	for i := range frames {
		if err := v.stream.send(frames[i].parts(v.actions)...); err != nil {
			return err
		}
		v.sent = time.Now()
	}
	v.seen = seen
	if time.Since(v.sent) > liveKeepalive {
		v.sent = time.Now()
		return v.stream.send([]byte(":\n\n"))
	}
	return nil
}

// liveStream writes with a bound on how long the viewer may take for each part.
type liveStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *liveStream) send(pieces ...[]byte) error {
	for _, p := range pieces {
		for part := range slices.Chunk(p, livePart) {
			// A writer without deadlines is one of a test.
			_ = s.control.SetWriteDeadline(time.Now().Add(liveWriteMax))
			if _, err := s.w.Write(part); err != nil {
				return fmt.Errorf("write frame: %w", err)
			}
		}
	}
	return s.control.Flush()
}
