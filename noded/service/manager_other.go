//go:build !windows

package service

import (
	"context"
	"io"
)

// Managed tells whether a service manager started this process that has to be answered. Only that of Windows has.
func Managed() bool { return false }

// Serve runs run.
func Serve(run func(ctx context.Context, log io.Writer) int) int {
	return run(context.Background(), io.Discard)
}
