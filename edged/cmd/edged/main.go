// Command edged runs an edge: it takes requests of clients, has them admitted, and hands them to nodes. Package edged
// has the daemon; this only reads flags and signals.
//
// Exit codes: 0 after an orderly stop, 1 after a failure while running or a second signal, 2 for bad usage or a bad
// configuration.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"iop/configs"
	"iop/edged"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv)) }

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer, env configs.Env) int {
	if len(args) > 0 && args[0] == "health" {
		return health(args[1:], stdout, stderr, env)
	}
	f, err := parseFlags(args, stderr, env)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case f.version:
		return say(stdout, "edged "+version())
	}
	config, warnings, err := configs.LoadEdge(f.config, env)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err) // the faults, one a line; nobody is left to tell if this fails
		return exitUsage
	}
	log := slog.New(f.handler(stderr))
	for _, w := range warnings {
		log.Warn("configuration", "file", f.config, "warning", w.String())
	}
	return serve(edged.Options{Config: config, Logger: log, Stdout: stdout, Version: version(), ConfigPath: f.config, Env: env}, stderr)
}

// serve runs the daemon until a signal stops it.
func serve(o edged.Options, stderr io.Writer) int {
	ctx, stop := stopOnSignals(o.Logger)
	defer stop()
	d, err := edged.New(o)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "edged: "+err.Error())
		return startCode(err)
	}
	defer rereadOnHangup(ctx, d.Reread)()
	if err := d.Run(ctx); err != nil {
		_, _ = fmt.Fprintln(stderr, "edged: "+err.Error())
		return startCode(err)
	}
	return exitOK
}

// startCode tells a configuration that turned out to be wrong from a failure.
func startCode(err error) int {
	var problems *configs.Problems
	if errors.As(err, &problems) {
		return exitUsage
	}
	return exitFailed
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

func say(w io.Writer, line string) int {
	if _, err := fmt.Fprintln(w, line); err != nil {
		return exitFailed
	}
	return exitOK
}
