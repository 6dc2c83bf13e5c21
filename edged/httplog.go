package edged

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// httpLog takes what an HTTP server has to say. Nearly all of it is about what clients do and only of interest when
// looking for something; a panic of a handler is a fault of ours.
type httpLog struct{ log *slog.Logger }

func newHTTPLog(l *slog.Logger) *log.Logger { return log.New(httpLog{l}, "", 0) }

func (h httpLog) Write(p []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.Contains(p, []byte("panic serving")) {
		level = slog.LevelError
	}
	h.log.Log(context.Background(), level, string(bytes.TrimSpace(p)))
	return len(p), nil
}
