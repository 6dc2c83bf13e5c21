package edgelink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"iop/proto/nodepb"
)

// deliver sends what is queued until the life is over.
func (s *life) deliver(st stream) {
	for {
		select {
		case <-s.dead:
			return
		case f := <-s.queue:
			if err := st.Send(f); err != nil {
				if !errors.Is(err, io.EOF) { // EOF: receive has the cause
					s.finish(fmt.Errorf("send to the edge: %w", err))
				}
				return
			}
		}
	}
}

// receive takes the edge's frames until the transport fails. Handling one never blocks.
func (s *life) receive(ctx context.Context, st stream) {
	for {
		f, err := st.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the edge closed the link")
			}
			s.finish(err)
			return
		}
		s.heardAt.Store(int64(s.age()))
		s.handle(ctx, f)
	}
}

func (s *life) handle(ctx context.Context, f *nodepb.EdgeFrame) {
	log := s.l.o.Logger
	switch f := f.Frame.(type) {
	case *nodepb.EdgeFrame_Heartbeat:
		s.seen.Store(f.Heartbeat.N)
		if f.Heartbeat.Ping {
			s.beat(false)
		}
	case *nodepb.EdgeFrame_NeedConnections:
		s.need(ctx, int(f.NeedConnections.Count))
	case *nodepb.EdgeFrame_Cancel:
		if e := s.l.o.Runs.cancel(s.generation, f.Cancel.Run); e != nil {
			s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RunEnded{RunEnded: e}})
		}
	case *nodepb.EdgeFrame_ConfigRefresh:
		s.push(f.ConfigRefresh)
	case *nodepb.EdgeFrame_Goodbye:
		s.finish(&byeError{reason: f.Goodbye.Reason, after: time.Duration(f.Goodbye.RetryAfterMs) * time.Millisecond})
	case *nodepb.EdgeFrame_LinkEnded:
		s.linkEnded(f.LinkEnded)
	case *nodepb.EdgeFrame_Drain:
		s.l.o.Drained(f.Drain.Provider, f.Drain.On)
	case *nodepb.EdgeFrame_Look:
		s.look(ctx, f.Look)
	case *nodepb.EdgeFrame_MembershipUpdate:
		s.members(f.MembershipUpdate)
	default:
		log.Debug("a frame that this version does not know is dropped")
	}
}

// push leaves r to configure, in the place of an older one that has not been taken up.
func (s *life) push(r *nodepb.NodeConfigRefreshRequest) {
	for {
		select {
		case s.refresh <- r:
			return
		default:
		}
		select {
		case <-s.refresh:
		default:
		}
	}
}
