package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// launch is a command to be started.
type launch struct {
	program string   // absolute path
	args    []string // without the program
	env     []string
	dir     string // the run's own
	id      string // of the run, in the environment of all that it starts
	grace   time.Duration
	keeper  []string
}

// markVar is in the environment of every process of a run. It says which run, and finds what is left of it if the keeper
// is killed.
const markVar = "IOP_RUN"

// exit is how a command ended.
type exit struct {
	code   int    // 0 to 255; -1 if a signal ended it, or if it is not known
	signal string // "" if none did
	lost   bool   // the keeper was killed, so nobody knows
}

func (x exit) ok() bool { return x.code == 0 }

func (x exit) String() string {
	switch {
	case x.lost:
		return "was killed together with its keeper"
	case x.signal != "":
		return "was ended by the signal " + x.signal
	default:
		return fmt.Sprintf("exited with code %d", x.code)
	}
}

// errTooLong: the system takes no arguments that long.
var errTooLong = errors.New("the arguments are too long")

// streams are the node's ends of a command's standard streams.
type streams struct {
	stdin  *os.File
	stdout *os.File
	stderr *os.File
}

func (s *streams) close() {
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// pipes opens the three pipes. theirs are the command's ends.
func pipes() (ours streams, theirs streams, err error) {
	if theirs.stdin, ours.stdin, err = os.Pipe(); err == nil {
		if ours.stdout, theirs.stdout, err = os.Pipe(); err == nil {
			ours.stderr, theirs.stderr, err = os.Pipe()
		}
	}
	if err != nil {
		ours.close()
		theirs.close()
		return streams{}, streams{}, fmt.Errorf("open pipes for the command: %w", err)
	}
	return ours, theirs, nil
}

// feed writes the prompt and closes stdin. A command that does not read it is no error: the pipe breaks when it ends.
func (s *streams) feed(text string) {
	_, _ = io.WriteString(s.stdin, text)
	_ = s.stdin.Close()
}
