// Package cli is iopctl: what an operator types.
package cli

import (
	"context"
	"io"
)

// DevOptions are the flags of iopctl dev.
type DevOptions struct {
	DataDir string
	Port    int
	Detect  bool
	Stdout  io.Writer
	Stderr  io.Writer
}

// Deps are what the command needs of its surroundings.
type Deps struct {
	Env     func(string) (string, bool)
	Version string
	// Dev runs edge, node and demo provider in this process until ctx ends; nil = the command is absent.
	Dev func(ctx context.Context, o DevOptions) error
}

// Run runs iopctl with args (without the program's name) and returns its exit code.
func Run(ctx context.Context, d Deps, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return 0
}
