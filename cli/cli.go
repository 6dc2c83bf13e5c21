package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Deps are what the command needs of its surroundings.
type Deps struct {
	// Env looks up an environment variable; nil = none is set.
	Env func(string) (string, bool)
	// Version of the program; "" = unknown.
	Version string
	// Dev runs edge, node and demo provider in this process until ctx ends; nil = there is no dev command.
	Dev func(ctx context.Context, o DevOptions) error
}

// Run runs iopctl with args (without the program's name) and returns its exit code: 0 or one of the Exit constants. What it
// finds goes to stdout, what went wrong to stderr.
func Run(ctx context.Context, d Deps, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(d)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	completions(root) // it takes the output as it is now
	err := root.ExecuteContext(ctx)
	if err != nil {
		report(stderr, err)
	}
	return exitCode(err)
}

func newRoot(d Deps) *cobra.Command {
	if d.Env == nil {
		d.Env = func(string) (string, bool) { return "", false }
	}
	g := &globals{env: d.Env}
	root := newGroup("iopctl", "See and steer iop, the self-hosted inference gateway")
	root.Long = `iopctl asks the admin listener of an edge (edged), checks configuration files, and starts a gateway to try things out.

It exits with 0 when all is well, 1 when something failed, 2 when the command line or a file is wrong; refresh also with 3, 4
and 5, drain with 6, cluster with 5 (see there).`
	root.Example = `  iopctl dev                         # a gateway with a demo backend, in this process
  iopctl status                      # of the edge at 127.0.0.1:9080
  iopctl queue list -o wide --edge gw1:9080 --edge gw2:9080
  iopctl config validate edge.yaml`
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(flagError)
	g.register(root)
	root.AddCommand(
		newStatus(g), newTop(g), newLeases(g), newQueue(g), newRequests(g), newUsage(g), newDebug(g, d.Version), newProviders(g), newNodes(g), newModels(g),
		newRefresh(g), newConfig(g), newTokens(g), newCerts(g), newCluster(g, d.Version), newVersion(g, d.Version),
	)
	if d.Dev != nil {
		root.AddCommand(newDev(d.Dev))
	}
	return root
}

// newGroup makes a command that only has others below it.
func newGroup(use, short string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		},
	}
}

// exactly wants n arguments, and says so as a usage error.
func exactly(n int) cobra.PositionalArgs { return asUsage(cobra.ExactArgs(n)) }

func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return &faultError{code: ExitUsage, err: err, cure: "write it as '" + strings.TrimSuffix(c.UseLine(), " [flags]") + "'; see '" + c.CommandPath() + " --help'"}
		}
		return nil
	}
}
