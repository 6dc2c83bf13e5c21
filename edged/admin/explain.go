package admin

import (
	"iop/edged/adminapi"
	"iop/fsm"
)

func showExplanation(x *fsm.Explanation) *adminapi.Explanation {
	out := &adminapi.Explanation{
		AheadCount: x.AheadCount, Ahead: make([]adminapi.Ahead, 0, len(x.Ahead)),
		Candidates: make([]adminapi.ExplainedCandidate, 0, len(x.States)),
	}
	for _, o := range x.Ahead {
		out.Ahead = append(out.Ahead, adminapi.Ahead{
			Position: o.Position, Request: string(o.Request), Model: string(o.Model), Class: o.Class.String(),
		})
	}
	for i := range x.States {
		s := &x.States[i]
		c := adminapi.ExplainedCandidate{
			Candidate: adminapi.Candidate{Provider: string(s.Provider), Dispatchable: s.Dispatchable, Reason: s.Reason},
			Node:      string(s.Node), Capacity: s.Capacity, InFlight: s.InFlight, Holders: make([]uint64, 0, len(s.Holders)),
			Needed: adminapi.Needed(s.Reason, string(s.Provider), string(s.Node), s.Cause),
		}
		for _, id := range s.Holders {
			c.Holders = append(c.Holders, uint64(id))
		}
		out.Candidates = append(out.Candidates, c)
	}
	return out
}
