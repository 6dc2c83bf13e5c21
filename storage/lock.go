package storage

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// takeLock holds the lock file until releaseLock or the end of the process, whichever way that comes.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w; choose a directory that can be written", err)
	}
	if err := lockFileNow(f, true); err != nil {
		return nil, errors.Join(heldBy(f, path, err), f.Close())
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the lock of the data directory: %w", err), f.Close())
	}
	return f, nil
}

// shareLock makes sure that nobody writes the directory as long as the file is open. Without a lock file it returns nil.
func shareLock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("open the lock of the data directory: %w", err)
	}
	if err := lockFileNow(f, false); err != nil {
		return nil, errors.Join(heldBy(f, path, err), f.Close())
	}
	return f, nil
}

func heldBy(f *os.File, path string, err error) error {
	if !errors.Is(err, errLockHeld) {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	who := ""
	b := make([]byte, 20)
	if n, _ := f.ReadAt(b, 0); n > 0 {
		who = ", process " + strings.TrimSpace(string(b[:n]))
	}
	return fmt.Errorf("%w (%s is locked%s): stop that process first, or use another directory", ErrLocked, path, who)
}

func releaseLock(f *os.File) error {
	if f == nil {
		return nil
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("release the lock of the data directory: %w", err)
	}
	return nil
}

var errLockHeld = errors.New("held by another process")
