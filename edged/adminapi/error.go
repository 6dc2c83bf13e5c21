package adminapi

import (
	"fmt"
	"strings"
)

// ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	Error *Error `json:"error"`
}

// Error is what went wrong and what to do about it.
type Error struct {
	Code    string `json:"code"`    // stable: not_found, method_not_allowed, unauthorized, forbidden_host, forbidden_origin, busy, failed, ...
	Message string `json:"message"` // one sentence
	Cure    string `json:"cure"`    // what the reader can do
	Status  int    `json:"-"`       // of HTTP
}

func (e *Error) Error() string { return e.Message }

// Remedy is what the reader can do.
func (e *Error) Remedy() string { return e.Cure }

// Attempt is a call to one edge that brought no answer.
type Attempt struct {
	Address string
	Err     error
}

// UnreachableError says that no edge answered, and for each address why.
type UnreachableError struct {
	Attempts []Attempt // in the order of the calls
}

func (e *UnreachableError) Error() string {
	parts := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		parts[i] = fmt.Sprintf("%s: %v", a.Address, a.Err)
	}
	return "no edge answered: " + strings.Join(parts, "; ")
}

// Remedy is what the reader can do.
func (e *UnreachableError) Remedy() string {
	for _, a := range e.Attempts {
		if a.Err != nil && strings.Contains(a.Err.Error(), "gave HTTP response to HTTPS client") {
			return "the admin listener speaks plain text there, as it does on loopback: leave --ca and IOP_CA out"
		}
	}
	return "start edged, or name the admin address that its ready line shows (admin=HOST:PORT) with --edge or IOP_EDGE"
}

func (e *UnreachableError) Unwrap() []error {
	errs := make([]error, len(e.Attempts))
	for i, a := range e.Attempts {
		errs[i] = a.Err
	}
	return errs
}
