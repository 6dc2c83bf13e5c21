package storage

import "errors"

// What a proposal can end with other than an outcome.
var (
	// ErrOverloaded: too much is queued, or the log is too slow; the command had no effect. Try again later.
	ErrOverloaded = errors.New("overloaded: the log is behind")
	// ErrSessionEnded: the session is not current any more; the command had no effect. Open a new session.
	ErrSessionEnded = errors.New("session ended")
	// ErrFailed: the store can't write. Whether the command takes effect is known only after the next start; nothing
	// is acknowledged any more. Store.Err tells the cause.
	ErrFailed = errors.New("storage failed")
	// ErrClosed: the store was closed before the command was written; it had no effect, unless it had been sent to another
	// replica already, which may still carry it out.
	ErrClosed = errors.New("storage closed")
	// ErrTooLarge: the command does not fit into an entry; it had no effect.
	ErrTooLarge = errors.New("command too large")
	// ErrOutOfStep: the log holds another batch under this number. It is a fault of this program.
	ErrOutOfStep = errors.New("session out of step with the log")
)

// What Open and Inspect can find wrong with a directory. The error that wraps one of them says what to do.
var (
	// ErrLocked: another process has the directory open.
	ErrLocked = errors.New("data directory is in use")
	// ErrNewer: a newer version of the program wrote the directory.
	ErrNewer = errors.New("data directory was written by a newer version")
	// ErrWrongReplica: the directory belongs to another replica.
	ErrWrongReplica = errors.New("data directory belongs to another replica")
	// ErrNotOurs: the directory holds something else.
	ErrNotOurs = errors.New("not a data directory")
	// ErrDamaged: a file is missing or does not have the content that was written.
	ErrDamaged = errors.New("data directory is damaged")
)
