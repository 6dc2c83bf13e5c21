//go:build unix

package cli_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"iop/noded/adapter/cli"
)

// The test binary plays three more parts: the keeper, the command, and a node that a test can kill.
const (
	playKeeper = "keep"
	playAgent  = "agent"
	playNode   = "node"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case playKeeper:
			os.Exit(cli.Keep())
		case playAgent:
			os.Exit(act(os.Args[2:]))
		case playNode:
			os.Exit(beNode(os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}
