package main

import "fmt"

// faultError is an error with what to do about it; cli prints both.
type faultError struct {
	err  error
	cure string
}

func fault(cure, format string, args ...any) error {
	return &faultError{err: fmt.Errorf(format, args...), cure: cure}
}

func (e *faultError) Error() string  { return e.err.Error() }
func (e *faultError) Unwrap() error  { return e.err }
func (e *faultError) Remedy() string { return e.cure }
