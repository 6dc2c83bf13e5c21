package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLogger gives raft's messages to slog, one level lower: what raft warns of at every start of a single replica is
// nothing that an operator could act on. Errors stay errors.
type raftLogger struct {
	to   *slog.Logger
	name string
	args []any
	few  *seldom // nil = all
}

// newPeerHclog is newHclog for a replica with others: that one of them does not answer is no error of this one, and
// is said again only after a while.
func newPeerHclog(to *slog.Logger) hclog.Logger {
	return &raftLogger{to: to, name: "raft", few: &seldom{said: map[string]time.Time{}}}
}

func newHclog(to *slog.Logger) hclog.Logger { return &raftLogger{to: to, name: "raft"} }

func slogLevel(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelInfo
	case hclog.Info:
		return slog.LevelDebug
	}
	return slog.LevelDebug - 4
}

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slogLevel(level)
	if !l.to.Enabled(context.Background(), to) {
		return
	}
	if l.few != nil {
		if !l.few.allow(msg, args) {
			return
		}
		to = min(to, slog.LevelWarn)
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	l.to.Log(context.Background(), to, l.name+": "+msg, args...)
}

func (l *raftLogger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *raftLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *raftLogger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *raftLogger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *raftLogger) enabled(level hclog.Level) bool {
	return l.to.Enabled(context.Background(), slogLevel(level))
}

func (l *raftLogger) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *raftLogger) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *raftLogger) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *raftLogger) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *raftLogger) IsError() bool { return l.enabled(hclog.Error) }

func (l *raftLogger) ImpliedArgs() []any { return l.args }

func (l *raftLogger) With(args ...any) hclog.Logger {
	return &raftLogger{to: l.to.With(args...), name: l.name, few: l.few, args: append(l.args[:len(l.args):len(l.args)], args...)}
}

func (l *raftLogger) Name() string { return l.name }

func (l *raftLogger) Named(name string) hclog.Logger { return l.ResetNamed(l.name + "." + name) }

func (l *raftLogger) ResetNamed(name string) hclog.Logger {
	return &raftLogger{to: l.to, name: name, args: l.args, few: l.few}
}

func (l *raftLogger) SetLevel(hclog.Level)  {}
func (l *raftLogger) GetLevel() hclog.Level { return hclog.Trace }

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(nil), "", 0)
}

func (l *raftLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return lineWriter{l} }

type lineWriter struct{ to *raftLogger }

func (w lineWriter) Write(p []byte) (int, error) {
	w.to.Info(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// seldom lets a message about a peer through once per sayEach.
type seldom struct {
	mu   sync.Mutex
	said map[string]time.Time
}

const (
	sayEach = 10 * time.Second
	sayMax  = 256 // messages remembered
)

func (s *seldom) allow(msg string, args []any) bool {
	key := msg
	if len(args) > 1 {
		key += fmt.Sprint(args[1]) // the peer, where there is one
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if at, ok := s.said[key]; ok && now.Sub(at) < sayEach {
		return false
	}
	if len(s.said) >= sayMax {
		clear(s.said)
	}
	s.said[key] = now
	return true
}
