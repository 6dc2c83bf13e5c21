package storage

import (
	"errors"
	"fmt"
	"syscall"

	"iop/fsm"
)

// cureOfOpening says what to do when the disk is why a directory can't be opened; other errors have their own cure.
func cureOfOpening(err error) string {
	for _, disk := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, disk) {
			return cureOf(err)
		}
	}
	return ""
}

// cureOf says what to do about a failure.
func cureOf(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "; the disk is full: free some space and start again, everything acknowledged is kept"
	case errors.Is(err, syscall.EROFS):
		return "; the file system is read-only: see the kernel's log, remount it and start again"
	case errors.Is(err, syscall.EIO), errors.Is(err, errHung):
		return "; check the disk and the kernel's log, then start again; everything acknowledged is kept if the disk kept what it confirmed"
	case errors.Is(err, ErrNewer), errors.Is(err, ErrDiverged), errors.Is(err, ErrTwin):
		return ""
	case errors.Is(err, ErrRemoved):
		return "; to bring it back, empty its data directory and start it with a new replica id"
	}
	return "; start again when the cause is removed, everything acknowledged is kept"
}

// tooLarge refuses what could be written but not read back, or would block the log for long.
func tooLarge(c fsm.Command) error {
	size := 0
	switch c := c.(type) {
	case *fsm.Admit:
		size = len(c.Request) + len(c.Model)
	case *fsm.Cancel:
		size = len(c.Request)
	case *fsm.Submit:
		size = len(c.Request.Model) + payloadBytes(&c.Payload)
	case *fsm.Progress:
		size = payloadBytes(&c.Payload)
	case *fsm.Keep:
		size = payloadBytes(&c.Payload)
	case *fsm.SetHealth:
		size = len(c.Cause)
	case *fsm.RegisterNode:
		size = 10 * len(c.Running)
	case *fsm.LinkReport:
		size = 10 * len(c.Running)
	case *fsm.ApplyConfig:
		size = len(c.Document) + len(marshalConfig(&c.Config))
	}
	if size > commandMax {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, commandMax)
	}
	return nil
}
