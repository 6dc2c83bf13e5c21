package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"iop/configs"
	"iop/edged/adminapi"
)

// refreshOptions are the flags of refresh.
type refreshOptions struct {
	file     string
	dryRun   bool
	liveOnly bool
	expected uint64
	offlineOptions
}

// refreshTimeout is --timeout of refresh, if none is given: the log may take its time, and then the nodes.
const refreshTimeout = 30 * time.Second

func newRefresh(g *globals) *cobra.Command {
	var o refreshOptions
	c := &cobra.Command{
		Use:   "refresh",
		Short: "Apply a changed edge file to a running edge",
		Long: `Apply a changed edge file to a running edge. Without -f the edge reads its own file on disk again; with -f the file is sent.
Running requests go on whatever changes. If any change needs a restart, nothing is applied and all such paths are shown;
--live-only applies the rest.

It exits with 0 if the file was applied or there was nothing to do, 2 if the file is invalid, 3 if a change needs a restart, 4 if
another change came first, 5 if there is no leader to take it.`,
		Example: `  iopctl refresh --dry-run
  iopctl refresh -f edge.yaml
  iopctl refresh --dry-run -f edge.yaml --data-dir ./data/edge-1     # of a stopped edge`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := g.refresh(c, &o)
			if err != nil {
				return err
			}
			if err := g.print(c, r, func(p *page) { showRefresh(p, r, o.file) }); err != nil {
				return err
			}
			return refreshVerdict(r)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "edge `file` to apply, - for standard input; without it the edge reads its own file again")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, change nothing")
	f.BoolVar(&o.liveOnly, "live-only", false, "apply what needs no restart, and leave the rest")
	f.Uint64Var(&o.expected, "expected-revision", 0, "apply only if this `revision` is in effect")
	o.register(c)
	_ = c.MarkFlagFilename("file", yamlFiles()...) // the flag just made
	return c
}

func (g *globals) refresh(c *cobra.Command, o *refreshOptions) (*adminapi.RefreshReport, error) {
	r := adminapi.RefreshRequest{DryRun: o.dryRun, LiveOnly: o.liveOnly}
	if c.Flags().Changed("expected-revision") {
		r.Expected = &o.expected
	}
	var err error
	if r.File, err = candidate(c, o.file); err != nil {
		return nil, err
	}
	if o.dataDir != "" {
		return g.refreshOffline(c, o, r)
	}
	if !c.Flags().Changed("timeout") {
		g.timeout = refreshTimeout
	}
	client, err := g.client(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	p := g.progress(c, "waiting for the edge, and for its nodes to confirm")
	defer p.done()
	report, err := client.Refresh(c.Context(), r)
	return report, leaderless(err)
}

// yamlFiles are the ends of names of configuration files.
func yamlFiles() []string { return []string{"yaml", "yml", "json"} }

// candidate reads the file that is to be sent; none is named: nil.
func candidate(c *cobra.Command, file string) ([]byte, error) {
	var data []byte
	var err error
	switch file {
	case "":
		return nil, nil
	case "-":
		data, err = io.ReadAll(io.LimitReader(c.InOrStdin(), configs.FileMax+1))
	default:
		data, err = os.ReadFile(file)
	}
	switch {
	case err != nil:
		return nil, &faultError{code: ExitUsage, err: fmt.Errorf("read the candidate: %w", err), cure: "check the path and that you may read it"}
	case len(data) == 0:
		return nil, &faultError{code: ExitUsage, err: fmt.Errorf("%s is empty", file), cure: "give an edge file, as in configs/examples/edge.yaml"}
	}
	return data, nil
}

// refreshVerdict is the error that gives the exit code.
func refreshVerdict(r *adminapi.RefreshReport) error {
	switch r.Result {
	case adminapi.RefreshInvalid:
		return &faultError{code: ExitUsage, err: errInvalid}
	case adminapi.RefreshRestartRequired:
		return &faultError{
			code: ExitRestart, err: errors.New("nothing was applied: some changes need a restart"),
			cure: "restart the edge with the file, or apply the rest with --live-only",
		}
	case adminapi.RefreshConflict:
		return &faultError{
			code: ExitConflict, err: fmt.Errorf("nothing was applied: revision %d is in effect, another change came first", r.Revision),
			cure: "look at 'iopctl config diff', then refresh again",
		}
	}
	return nil
}
