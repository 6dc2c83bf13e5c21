package peerlink

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// complaints logs a fault once a minute, for who is wrong tries again at once and for ever.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time
}

const (
	complaintEvery = time.Minute
	complaintsMax  = 256 // faults remembered
)

func (c *complaints) warn(what string, remote net.Addr, err error) {
	if c.fresh(what + " " + hostOf(remote) + " " + err.Error()) {
		c.log.Warn("cluster listener: "+what, "remote", remote.String(), "error", err)
	}
}

func (c *complaints) fresh(fault string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if at, ok := c.said[fault]; ok && now.Sub(at) < complaintEvery {
		return false
	}
	if len(c.said) >= complaintsMax {
		clear(c.said)
	}
	c.said[fault] = now
	return true
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}
