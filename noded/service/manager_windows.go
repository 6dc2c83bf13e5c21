package service

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// Managed tells whether the service manager started this process.
func Managed() bool {
	managed, err := svc.IsWindowsService()
	return err == nil && managed
}

// Serve runs a service until the manager stops it: run's context ends then. Its log goes to the event log. It returns run's
// exit code.
func Serve(run func(ctx context.Context, log io.Writer) int) int {
	var log io.Writer = io.Discard
	if events, err := eventlog.Open(WindowsName); err == nil {
		defer func() { _ = events.Close() }()
		log = eventWriter{events}
	}
	h := &handler{run: run, log: log}
	if err := svc.Run(WindowsName, h); err != nil {
		_, _ = fmt.Fprintf(log, "level=ERROR msg=%q error=%q\n", "the service manager could not be answered", err)
		return 1
	}
	return h.code
}

type handler struct {
	run  func(ctx context.Context, log io.Writer) int
	log  io.Writer
	code int
}

// Execute is one life of the service.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (bool, uint32) {
	const accepts = svc.AcceptStop | svc.AcceptShutdown
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changes <- svc.Status{State: svc.StartPending}
	done := make(chan int, 1)
	go func() { done <- h.run(ctx, h.log) }()
	changes <- svc.Status{State: svc.Running, Accepts: accepts}
	for {
		select {
		case h.code = <-done:
			changes <- svc.Status{State: svc.StopPending}
			return h.code != 0, uint32(h.code) // a failure of our own: the manager's recovery starts it again
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				changes <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				// WaitHint is in ms, and longer than running requests have to end.
				changes <- svc.Status{State: svc.StopPending, WaitHint: uint32(stopWait.Milliseconds())}
				cancel()
			}
		}
	}
}

// eventWriter puts each line of a log into the event log, by its level.
type eventWriter struct{ events *eventlog.Log }

// eventID is that of all our events: 1 to 1000 are what EventCreate's source can show.
const eventID = 1

func (w eventWriter) Write(line []byte) (int, error) {
	report, text := w.events.Info, string(bytes.TrimSpace(line))
	switch {
	case bytes.Contains(line, []byte("level=ERROR")), bytes.Contains(line, []byte(`"level":"ERROR"`)):
		report = w.events.Error
	case bytes.Contains(line, []byte("level=WARN")), bytes.Contains(line, []byte(`"level":"WARN"`)):
		report = w.events.Warning
	}
	if err := report(eventID, text); err != nil {
		return 0, err
	}
	return len(line), nil
}
