package openai

import (
	"context"
	"log/slog"

	"iop/fsm"
)

// ended decides what an end means for the lease and for the client.
func (x *exchange) ended(ctx context.Context, e *End) (why fsm.Reason, requeue bool) {
	a := &x.answer
	a.dispatched = e.Dispatched
	switch {
	case e.Code == "" && e.Complete && a.status != 0:
		a.complete, a.dispatched = true, DispatchedYes
		return fsm.ReasonDone, false
	case ctx.Err() != nil || a.writeErr != nil:
		x.err = errLeft
		return fsm.ReasonCanceled, false
	case e.Dispatched == DispatchedNo && (e.Code == endBadCall || e.Code == endMalformed):
		x.fail = &failure{kind: kindMalformed, dispatched: DispatchedNo, message: "The request can't be passed on: " + e.Message + "."}
		return fsm.ReasonNotRun, false
	case e.Dispatched == DispatchedNo && !a.committed():
		a.hold(publicCause(e))
		x.log(slog.LevelWarn, "not run", "provider", x.out.Grant.Provider, "node", x.out.Grant.Node,
			"code", e.Code, "cause", e.Message)
		return fsm.ReasonNotRun, true
	}
	x.fail = &failure{kind: kindProvider, dispatched: e.Dispatched, message: "The provider failed during the request (" + publicCause(e) + "). Try again."}
	why = fsm.ReasonBackendError
	switch e.Code {
	case endTimeout:
		x.fail.kind, why = kindProviderLate, fsm.ReasonTimeout
	case endLinkLost:
		why = fsm.ReasonLinkLost
	case endCanceled:
		why = fsm.ReasonCanceled
	}
	x.log(slog.LevelWarn, "run failed", "provider", x.out.Grant.Provider, "node", x.out.Grant.Node,
		"code", e.Code, "dispatched", e.Dispatched.header(), "cause", e.Message)
	return why, false
}

// publicCause tells a client how an exchange ended: the code and what it means, but not where the backend stands. The
// log has the rest.
func publicCause(e *End) string {
	switch e.Code {
	case "":
		return "incomplete answer"
	case "connect_failed":
		return "connect_failed: its backend refused the connection or could not be reached"
	case "busy":
		return "busy: its backend is loading or at its limit"
	case "concurrency":
		return "concurrency: its node had no slot free"
	case "backend_broke":
		return "backend_broke: the connection to its backend ended before the answer did"
	case endTimeout:
		return "backend_timeout: its backend did not answer in time"
	case endLinkLost:
		return "link_lost: the connection to its node was lost"
	}
	return e.Code
}
