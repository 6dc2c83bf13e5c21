package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// stopOnSignals ends the context at the first SIGINT, SIGTERM or console event, and the process at the second.
func stopOnSignals(log *slog.Logger) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for stopping := false; ; stopping = true {
			select {
			case <-done:
				return
			case s := <-signals:
				if stopping {
					log.Warn("stopped at once", "signal", s.String())
					os.Exit(exitFailed)
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

// rereadOnHangup has the configuration read again at each SIGHUP, until the returned function is called. Signals that come
// while it is being read are one.
func rereadOnHangup(ctx context.Context, reread func(context.Context)) func() {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				reread(ctx)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		cancel()
		<-ended
	}
}
