//go:build !unix

package adapter

import "time"

// trustedIdle is how long an idle connection is taken to be alive where its socket can't be asked.
const trustedIdle = time.Second

// alive reports whether an idle connection can still be used, judged by its age.
func (c *conn) alive(now time.Time) bool { return now.Sub(c.idleSince) < trustedIdle }

// readOrIdle has idle called before each read, for the socket can't be asked.
func (c *conn) readOrIdle(p []byte) (int, error) {
	if c.idleErr = c.idle(); c.idleErr != nil {
		return 0, c.idleErr
	}
	return c.stream.Read(p)
}
