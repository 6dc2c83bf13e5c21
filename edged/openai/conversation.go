package openai

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"iop/edged/openai/respond"
)

// Bounds of a conversation that a request goes on with.
const (
	chainMax      = 1000
	chainBytesMax = 64 << 20
)

// conversation gives the items that came before the request's own, oldest first, and puts items in the place of references.
func (x *exchange) conversation(ctx context.Context, q *respond.Request) ([]json.RawMessage, *failure) {
	var blame *failure
	problem := q.Refer(func(id string) json.RawMessage {
		found, err := x.item(ctx, id)
		if err != nil {
			blame = storeFailure(err, id)
		}
		return found
	})
	switch {
	case blame != nil:
		return nil, blame
	case problem != nil:
		return nil, malformed(problem)
	}
	var turns [][]json.RawMessage
	size := 0
	for id := q.Previous; id != ""; {
		r, err := x.s.o.Store.Get(ctx, x.who.principal, id)
		if errors.Is(err, ErrNoResponse) {
			return nil, noPrevious(id)
		}
		if err != nil {
			return nil, storeFailure(err, id)
		}
		if !r.Status.Final() {
			return nil, previousProblem("The response " + strconv.Quote(shown(id)) + " is still running. Go on from it when it has ended.")
		}
		turn := append(slices.Clone(r.Input), respond.Output(r.Object)...)
		before := size
		for _, it := range turn {
			size += len(it)
		}
		// A few bytes of a request bring in all of this, so it counts as the request's own.
		if !x.charge(max(x.charged, bodyFirstBytes) + int64(size-before)) {
			return nil, tooManyBodies()
		}
		if turns = append(turns, turn); len(turns) > chainMax || size > chainBytesMax {
			return nil, previousProblem("The conversation before this request is too long. Send what matters of it as 'input'.")
		}
		id = r.Previous
	}
	slices.Reverse(turns)
	return slices.Concat(turns...), nil
}

// item finds an item by its id; nil = there is none.
func (x *exchange) item(ctx context.Context, id string) (json.RawMessage, error) {
	response, ours := respond.ResponseOf(id)
	if !ours {
		return nil, nil
	}
	r, err := x.s.o.Store.Get(ctx, x.who.principal, response)
	switch {
	case errors.Is(err, ErrNoResponse):
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, it := range slices.Concat(r.Input, respond.Output(r.Object)) {
		if respond.ItemID(it) == id {
			return it, nil
		}
	}
	return nil, nil
}

func noPrevious(id string) *failure {
	f := previousProblem("Previous response with id " + strconv.Quote(shown(id)) + " not found: it was not stored, or was deleted since. Send the conversation as 'input' instead.")
	f.code = "previous_response_not_found"
	return f
}

func previousProblem(message string) *failure {
	return &failure{kind: kindMalformed, param: "previous_response_id", message: message, dispatched: DispatchedNo}
}

// storeFailure is what a client is told of a Store's error.
func storeFailure(err error, id string) *failure {
	switch {
	case errors.Is(err, ErrNoResponse):
		return noResponse(id)
	case errors.Is(err, ErrTooLong):
		return &failure{kind: kindTooLarge, message: "The request is too large to be run in the background. Leave 'background' out.", dispatched: DispatchedNo}
	case errors.Is(err, ErrStoreFull):
		return &failure{kind: kindOverloaded, message: "As many responses run in the background as can be stored. Try again after the time in Retry-After.", dispatched: DispatchedNo}
	}
	return &failure{kind: kindStorage, message: "The stored responses can't be reached at the moment. Try again after the time in Retry-After.", dispatched: DispatchedNo}
}

func noResponse(id string) *failure {
	return &failure{kind: kindNoResponse, message: "Response with id " + strconv.Quote(shown(id)) + " not found: it was not stored, was deleted or is too old, or belongs to another principal."}
}
