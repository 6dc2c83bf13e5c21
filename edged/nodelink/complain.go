package nodelink

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// complaints logs a fault once a minute, for who is wrong tries again at once and for ever, and not more than
// complaintsMax faults a minute, for a stranger can be wrong in many ways.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	said  map[string]bool // since began
	began time.Time
}

const (
	complaintEvery = time.Minute
	complaintsMax  = 32
)

// tell logs that somebody at a host was turned away.
func (c *complaints) tell(what string, remote net.Addr, err error) {
	var op *net.OpError
	cause := err
	if errors.As(err, &op) {
		cause = op.Err // without the ports, which differ each time
	}
	if c.fresh(fmt.Sprint(what, " ", hostOf(remote), " ", cause), time.Now()) {
		c.log.Info(what, "remote", remote.String(), "error", err)
	}
}

// fresh tells whether a fault is to be logged.
func (c *complaints) fresh(fault string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == nil || now.Sub(c.began) >= complaintEvery {
		c.began, c.said = now, map[string]bool{}
	}
	if c.said[fault] || len(c.said) == complaintsMax {
		return false
	}
	c.said[fault] = true
	return true
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}
