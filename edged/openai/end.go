package openai

import (
	"context"

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
		a.hold(cause(e))
		return fsm.ReasonNotRun, true
	}
	x.fail = &failure{kind: kindProvider, dispatched: e.Dispatched, message: "The provider failed during the request (" + cause(e) + "). Try again."}
	why = fsm.ReasonBackendError
	switch e.Code {
	case endTimeout:
		x.fail.kind, why = kindProviderLate, fsm.ReasonTimeout
	case endLinkLost:
		why = fsm.ReasonLinkLost
	case endCanceled:
		why = fsm.ReasonCanceled
	}
	x.s.o.Logger.Warn("run failed", "request", x.shown, "provider", x.out.Grant.Provider, "node", x.out.Grant.Node,
		"code", e.Code, "dispatched", e.Dispatched.header(), "cause", e.Message)
	return why, false
}

// cause tells an end in words.
func cause(e *End) string {
	code := e.Code
	if code == "" {
		code = "incomplete answer"
	}
	if e.Message == "" {
		return code
	}
	return code + ": " + e.Message
}
