package edgelink

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// faultPause is how long a fault that repeats is not told again.
const faultPause = time.Minute

// fault is why a link is not up, as it was told last. The zero value is none.
type fault struct {
	kind  string // what happened, without the numbers in it: ports of this end are other ones each time
	told  time.Time
	tries int // since it was told
}

// log tells what is new, or was told a while ago; the rest is for those who debug.
func (f *fault) log(log *slog.Logger, level slog.Level, what, msg string, args ...any) {
	kind := strings.Map(letters, what)
	switch {
	case f.kind == kind && time.Since(f.told) < faultPause:
		f.tries++
		level = slog.LevelDebug
	case f.kind == kind:
		args = append(args, "tries", f.tries+1)
		*f = fault{kind: kind, told: time.Now()}
	default:
		*f = fault{kind: kind, told: time.Now()}
	}
	log.Log(context.Background(), level, msg, args...)
}

// letters drops digits.
func letters(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}
