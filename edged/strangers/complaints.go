package strangers

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Complaints says of a fault once a minute that it is news, for who is wrong tries again at once and for ever, and of not
// more than 32 faults a minute, for a stranger can be wrong in many ways. The zero value is ready.
type Complaints struct {
	mu    sync.Mutex
	said  map[string]bool // since began
	began time.Time
}

const (
	complaintEvery = time.Minute
	complaintsMax  = 32
)

// News tells whether it is to be logged what is wrong with somebody at a host. Ports make no difference: they differ each
// time. err may be nil.
func (c *Complaints) News(what string, remote net.Addr, err error) bool {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return c.fresh(fmt.Sprint(what, " ", hostOf(remote), " ", err), time.Now())
}

func (c *Complaints) fresh(fault string, now time.Time) bool {
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
