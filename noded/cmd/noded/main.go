// Command noded runs a node: it reaches the backends beside it for the edges of its file. Package noded has the daemon;
// this only reads flags and signals.
//
// Exit codes: 0 after an orderly stop, 1 after a failure while running or a second signal, 2 for bad usage or a bad
// configuration.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"iop/configs"
	"iop/noded"
	"iop/noded/service"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	if code, keeps := noded.Keep(os.Args); keeps {
		os.Exit(code)
	}
	if service.Managed() {
		os.Exit(service.Serve(func(ctx context.Context, log io.Writer) int {
			return serve(ctx, os.Args[1:], io.Discard, log, os.LookupEnv)
		}))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer, env configs.Env) int {
	if len(args) > 0 {
		switch args[0] {
		case "check":
			return check(args[1:], stdout, stderr, env)
		case "join":
			return join(args[1:], stdout, stderr, env)
		case "service":
			return manage(args[1:], stdout, stderr, env)
		}
	}
	return serve(context.Background(), args, stdout, stderr, env)
}

// serve runs the node until a signal, or the end of parent, stops it.
func serve(parent context.Context, args []string, stdout, stderr io.Writer, env configs.Env) int {
	f, err := parseFlags(args, stderr, env)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case f.version:
		return say(stdout, "noded "+version())
	}
	config, warnings, err := configs.LoadNode(f.config, env)
	if err != nil {
		return refuse(stderr, err)
	}
	log := slog.New(f.handler(stderr))
	for _, w := range warnings {
		log.Warn("configuration", "file", f.config, "warning", w.String())
	}
	d, err := noded.New(noded.Options{Config: config, Logger: log, Stdout: stdout, Version: version(), Env: env, Keeper: noded.Keeper()})
	if err != nil {
		return refuse(stderr, err)
	}
	ctx, stop := stopOnSignals(parent, log, os.Exit)
	defer stop()
	if err := d.Run(ctx); err != nil {
		log.Error("noded failed", "error", err)
		return exitFailed
	}
	return exitOK
}

// stopOnSignals ends the context at the first SIGINT, SIGTERM or console event, and calls exit at the second.
func stopOnSignals(parent context.Context, log *slog.Logger, exit func(code int)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for stopping := false; ; stopping = true {
			select {
			case <-done:
				return
			case s := <-signals:
				if stopping {
					log.Warn("stopped at once", "signal", s.String())
					exit(exitFailed)
					return
				}
				log.Info("stopping; once more stops at once", "signal", s.String())
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-ended
		cancel()
	}
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

// refuse prints a configuration's faults, one a line.
func refuse(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintln(stderr, err) // nobody is left to tell
	return exitUsage
}
