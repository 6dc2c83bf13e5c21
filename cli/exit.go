package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"iop/configs"
	"iop/edged/adminapi"
)

// The exit codes besides 0.
const (
	ExitFailure  = 1 // something failed
	ExitUsage    = 2 // the command line or a file is wrong
	ExitRestart  = 3 // of refresh: it needs a restart, nothing was applied
	ExitConflict = 4 // of refresh: another change came first, nothing was applied
	ExitNoLeader = 5 // of what changes the cluster: no leader could take it

	ExitStillRunning = 6 // of drain: requests still ran when the wait was over
)

// exit is an exit code, as it is documented.
type exit struct {
	code int
	of   string // the commands that have it; "" = all
	text string
}

// exits are all of them.
func exits() []exit {
	return []exit{
		{0, "", "all is well"},
		{ExitFailure, "", "something failed: no edge answered, it refused, a file could not be read or written"},
		{ExitUsage, "", "the command line or a file is wrong: nothing was done"},
		{ExitRestart, "refresh", "changes need a restart: nothing was applied"},
		{ExitConflict, "refresh, nodes add", "another change came first: nothing was applied"},
		{ExitNoLeader, "refresh, nodes add, nodes token, nodes and providers drain and undrain, queue cancel, cluster", "no leader could take the change"},
		{ExitStillRunning, "nodes drain, providers drain", "with --wait: requests still ran when --wait-timeout was over; it stays drained"},
	}
}

// faultError is an error that carries its exit code and, if we know one, what to do about it.
type faultError struct {
	code int
	err  error
	cure string
}

func (e *faultError) Error() string  { return e.err.Error() }
func (e *faultError) Unwrap() error  { return e.err }
func (e *faultError) Remedy() string { return e.cure }

// usage makes an error of the command line.
func usage(c *cobra.Command, err error) error {
	return &faultError{code: ExitUsage, err: err, cure: "see '" + c.CommandPath() + " --help'"}
}

// flagError is what a command says to an option that it does not have, or can't read.
func flagError(c *cobra.Command, err error) error {
	var none *pflag.NotExistError
	if !errors.As(err, &none) {
		return usage(c, err)
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	cure := "see '" + c.CommandPath() + " --help'"
	if near := configs.Nearest(none.GetSpecifiedName(), known); near != "" && len(none.GetSpecifiedName()) > 1 {
		cure = "did you mean --" + near + "? " + cure
	}
	return &faultError{code: ExitUsage, err: err, cure: cure}
}

// leaderless gives an edge's answer that no leader could take a change its exit code; other errors pass.
func leaderless(err error) error {
	var refusal *adminapi.Error
	if errors.As(err, &refusal) && refusal.Code == "no_leader" {
		return &faultError{code: ExitNoLeader, err: err, cure: refusal.Cure}
	}
	return err
}

func unknownCommand(c *cobra.Command, name string) error {
	cure := "see '" + c.CommandPath() + " --help'"
	names := c.SuggestionsFor(name) // those that begin so
	if len(names) == 0 {
		for _, sub := range c.Commands() {
			names = append(names, sub.Name())
		}
		names = []string{configs.Nearest(name, names)}
	}
	if names[0] != "" {
		cure = fmt.Sprintf("did you mean '%s %s'?", c.CommandPath(), names[0])
	}
	return &faultError{code: ExitUsage, err: fmt.Errorf("unknown command %q of %s", name, c.CommandPath()), cure: cure}
}

func exitCode(err error) int {
	var f *faultError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &f):
		return f.code
	}
	return ExitFailure
}

// report prints an error and its cure.
func report(w io.Writer, err error) {
	for i, line := range strings.Split(err.Error(), "\n") {
		if i == 0 {
			line = "iopctl: " + line
		}
		_, _ = fmt.Fprintln(w, printable(line))
	}
	if cure := remedy(err); cure != "" {
		_, _ = fmt.Fprintln(w, "  cure: "+printable(cure))
	}
}

// remedy is what the reader can do; "" = that is not known.
func remedy(err error) string {
	var r interface{ Remedy() string }
	if !errors.As(err, &r) {
		return ""
	}
	var none *adminapi.UnreachableError
	if errors.As(err, &none) && any(none) == any(r) {
		return unreached(none)
	}
	return r.Remedy()
}
