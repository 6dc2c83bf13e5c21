package peerlink

import (
	"errors"
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

func (c *complaints) warn(what string, remote net.Addr, err error) {
	var op *net.OpError
	if errors.As(err, &op) && !errors.Is(err, ErrRefused) {
		err = op.Err // without the ports, which differ each time
	}
	if c.fresh(what+" "+hostOf(remote)+" "+err.Error(), time.Now()) {
		c.log.Warn("cluster listener: "+what, "remote", remote.String(), "error", err)
	}
}

// fresh tells whether a fault is to be logged.
func (c *complaints) fresh(fault string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.began) >= complaintEvery {
		c.began = now
		clear(c.said)
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
