package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
)

// Bounds of the streams.
const (
	watchersMax    = 4096             // at the same time
	watchBuffer    = 256              // effects kept for a slow reader; more are lost to it
	watchWriteMax  = 10 * time.Second // a reader that takes nothing for this long is cut off
	watchKeepalive = 15 * time.Second
)

// watch streams effects as server-sent events. It sits at the end of a lossy fan-out: a reader that never reads fills its
// own buffer, then its own socket, and is cut off; the store never waits for it.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	if a.watchers.Add(1) > watchersMax {
		a.watchers.Add(-1)
		writeError(w, &adminapi.Error{
			Code:    "busy",
			Message: fmt.Sprintf("%d watchers are connected already", watchersMax),
			Cure:    "close some, or read GET /status at intervals",
			Status:  http.StatusServiceUnavailable,
		})
		return
	}
	defer a.watchers.Add(-1)
	effects := a.Source.Watch(r.Context(), watchBuffer)
	w.Header().Set("Content-Type", "text/event-stream")
	stream := eventStream{w: w, control: http.NewResponseController(w)}
	if r.Method == http.MethodHead || stream.send([]byte(": lossy\n\n")) != nil {
		return
	}
	a.follow(r, effects, &stream)
}

func (a *api) follow(r *http.Request, effects <-chan fsm.Effect, stream *eventStream) {
	alive := time.NewTicker(watchKeepalive)
	defer alive.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-a.Stopping:
			return
		case <-alive.C:
			err = stream.send([]byte(":\n\n"))
		case e, open := <-effects:
			if !open {
				return
			}
			err = stream.send(gather(e, effects))
		}
		if err != nil {
			return
		}
	}
}

// gather makes one write of an effect and those that already wait behind it.
func gather(e fsm.Effect, more <-chan fsm.Effect) []byte {
	var b bytes.Buffer
	for range watchBuffer {
		writeEvent(&b, showEffect(e))
		select {
		case next, open := <-more:
			if !open {
				return b.Bytes()
			}
			e = next
		default:
			return b.Bytes()
		}
	}
	writeEvent(&b, showEffect(e))
	return b.Bytes()
}

func writeEvent(b *bytes.Buffer, e adminapi.Event) {
	fmt.Fprintf(b, "event: %s\ndata: ", e.Kind)
	// An Event has nothing that can't be encoded; Encode ends the line.
	_ = json.NewEncoder(b).Encode(e)
	b.WriteByte('\n')
}

// eventStream writes with a bound on how long the reader may block.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *eventStream) send(p []byte) error {
	// A writer without deadlines is one of a test.
	_ = s.control.SetWriteDeadline(time.Now().Add(watchWriteMax))
	if _, err := s.w.Write(p); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return s.control.Flush()
}

func showEffect(e fsm.Effect) adminapi.Event {
	out := adminapi.Event{
		Edge:       string(e.Edge),
		Session:    uint64(e.Session),
		Request:    string(e.Request),
		Node:       string(e.Node),
		Generation: uint64(e.Generation),
		Revision:   uint64(e.Revision),
	}
	switch e.Kind {
	case fsm.EffectGranted:
		out.Kind = "granted"
	case fsm.EffectEnded:
		out.Kind, out.Reason = "ended", e.Refusal.String()
	case fsm.EffectReturned:
		out.Kind, out.Reason = "returned", e.Reason.String()
	case fsm.EffectLinkFenced:
		out.Kind, out.Reason = "link_fenced", e.Reason.String()
	case fsm.EffectSessionEnded:
		out.Kind, out.Reason = "session_ended", e.Reason.String()
	case fsm.EffectConfig:
		out.Kind = "config"
	}
	if g := e.Grant; g.Lease != 0 {
		out.Request, out.Model, out.Lease = string(g.Request), string(g.Model), uint64(g.Lease)
		out.Provider, out.Node, out.Generation = string(g.Provider), string(g.Node), uint64(g.Generation)
	}
	return out
}
