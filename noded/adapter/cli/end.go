package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// end tells the client and the edge how the run came out. Nothing of it runs any more.
func (u *run) end(ctx context.Context, fault error, x exit) adapter.End {
	switch {
	case u.out.Err() != nil:
		return adapter.End{Dispatched: adapter.DispatchedYes, Code: adapter.CodeAnswerFailed, Message: u.out.Err().Error()}
	case errors.Is(fault, errStopFound):
		return u.finish()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return u.late()
	case ctx.Err() != nil:
		return adapter.End{Dispatched: adapter.DispatchedYes, Code: adapter.CodeCanceled, Message: "the run was canceled, and the command ended"}
	case errors.Is(fault, errOutputMax):
		return u.fail(fmt.Sprintf("%v (%d bytes)", fault, u.a.c.OutputMax), "ask for less, or have the operator raise output_max_bytes of the adapter")
	case fault != nil:
		return u.fail(fault.Error(), "")
	case !x.ok():
		return u.fail("the command "+x.String()+u.words(), "")
	case u.reply.failed:
		return u.fail("the command reports a failure"+u.words(), "")
	}
	if lack := u.parse.missing(); lack != "" {
		return u.fail("the command ended in order, but its output lacks "+lack+u.words(), "")
	}
	return u.finish()
}

// words is what the command itself says about a failure: in its output, else at the end of stderr.
func (u *run) words() string {
	said := clean(u.reply.trouble, u.a.c.Secrets)
	if said == "" {
		said = u.errs.text(u.a.c.Secrets)
	}
	if said == "" {
		return ""
	}
	return ": " + said
}

// fail answers that the command broke.
func (u *run) fail(message, cure string) adapter.End {
	return answer(u.out, &chat.Problem{Status: http.StatusBadGateway, Code: "provider_error", Message: message, Cure: cure})
}

// late answers that the command took too long.
func (u *run) late() adapter.End {
	return answer(u.out, &chat.Problem{
		Status: http.StatusGatewayTimeout, Code: "provider_timeout", Message: "the command did not end within its time limit" + u.words(),
		Cure: "ask for less, or have the operator raise timeout_ms of the adapter",
	})
}

// finish ends an answer in order.
func (u *run) finish() adapter.End {
	if u.reply.usage != nil {
		u.out.Usage(*u.reply.usage)
	}
	reason := u.reply.finish
	if reason == "" {
		reason = chat.FinishStop
	}
	err := u.reply.rest()
	if err == nil {
		err = u.out.Finish(reason)
	}
	if err == nil {
		err = u.out.End()
	}
	if errors.Is(err, chat.ErrTooLarge) {
		return u.fail(err.Error(), "ask for a stream")
	}
	if err != nil {
		return adapter.End{Dispatched: adapter.DispatchedYes, Code: adapter.CodeAnswerFailed, Message: err.Error()}
	}
	return adapter.End{Dispatched: adapter.DispatchedYes}
}
