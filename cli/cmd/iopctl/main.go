// Command iopctl is what an operator types. Package cli has the commands; this only reads the command line and signals,
// and brings what cli may not import: dev, which runs an edge and a node in this process.
//
// Exit codes: 0 all is well, 1 something failed, 2 the command line or a file is wrong.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"iop/cli"
	"iop/noded"
)

func main() {
	if code, keeps := noded.Keep(os.Args); keeps { // of a command that dev's node runs
		os.Exit(code)
	}
	// All but dev live for a second and then go: replaying a long log (leases inspect, debug) makes much garbage of little
	// state, and the collector would take a third of the time. GOGC in the environment wins.
	if _, set := os.LookupEnv("GOGC"); !set && (len(os.Args) < 2 || os.Args[1] != "dev") {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run())
}

const gcPercent = 800

// run ends its context at the first signal; the second one ends the process, as it does without us.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	deps := cli.Deps{Env: os.LookupEnv, Version: version(), Dev: dev}
	return cli.Run(ctx, deps, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// stamped is the version that the build gives: -ldflags "-X main.stamped=v1.2.3".
var stamped string

// version is the stamped one, or that of the module.
func version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "dev"
}
