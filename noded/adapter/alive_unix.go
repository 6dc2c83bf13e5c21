//go:build unix

package adapter

import (
	"errors"
	"io"
	"os"
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

// readOrIdle reads what is there. If nothing is, idle is called before it waits.
func (c *conn) readOrIdle(p []byte) (n int, err error) {
	waited := c.raw.Read(func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), p)
			switch {
			case errors.Is(err, syscall.EINTR):
				continue
			case !errors.Is(err, syscall.EAGAIN):
				return true
			}
			c.idleErr = c.idle()
			return c.idleErr != nil
		}
	})
	switch {
	case c.idleErr != nil:
		return 0, c.idleErr
	case waited != nil:
		return 0, waited
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
