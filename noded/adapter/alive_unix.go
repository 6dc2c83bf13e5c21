//go:build unix

package adapter

import (
	"errors"
	"syscall"
	"time"
)

// alive reports whether an idle connection can still be used: nothing has come on it, neither an end nor bytes that
// nobody asked for. It looks without waiting.
func (c *conn) alive(time.Time) bool {
	if c.raw == nil {
		return false
	}
	quiet := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}
