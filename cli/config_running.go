package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/storage"
)

func newConfigShow(g *globals) *cobra.Command {
	var o offlineOptions
	var revision uint64
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the configuration that is in effect",
		Long: `Show the cluster part of the configuration that is in effect, with the keys of the edge file and all defaults filled in.
What an edge was started with and what is in effect may differ after a refresh: 'iopctl config diff' shows how.`,
		Example: `  iopctl config show -o yaml
  iopctl config show --revision 6 > before.yaml      # one of those that 'iopctl config history' lists, while it is kept
  iopctl config show --data-dir ./data/edge-1`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			running, err := g.config(c, o.dataDir, revision)
			if err != nil {
				return err
			}
			text, err := configText(running)
			if err != nil {
				return err
			}
			return g.print(c, running, func(p *page) { p.text.Write(text) })
		},
	}
	o.register(c)
	c.Flags().Uint64Var(&revision, "revision", 0, "that of this `revision`, 0 = the one in effect")
	c.MarkFlagsMutuallyExclusive("revision", "data-dir")
	return c
}

// config asks for the running configuration, or reads it from a stopped replica's files.
func (g *globals) config(c *cobra.Command, dataDir string, revision uint64) (*adminapi.Config, error) {
	if dataDir != "" {
		m, _, err := storage.Inspect(dataDir)
		if err != nil {
			return nil, err
		}
		return &adminapi.Config{Revision: uint64(m.Revision()), Document: json.RawMessage(m.Document())}, nil
	}
	client, err := g.client(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if revision > 0 {
		return client.ConfigAt(c.Context(), revision)
	}
	return client.Config(c.Context())
}

// configText is the document as people write it.
func configText(running *adminapi.Config) ([]byte, error) {
	head := fmt.Sprintf("# The cluster part of the configuration: revision %d.\n", running.Revision)
	if len(running.Document) == 0 || bytes.Equal(running.Document, []byte("null")) {
		return []byte(head + "# No configuration was applied yet.\n"), nil
	}
	text, err := configs.YAML(running.Document)
	if err != nil {
		return nil, err
	}
	return append([]byte(head), text...), nil
}

func newConfigDiff(g *globals) *cobra.Command {
	var o offlineOptions
	c := &cobra.Command{
		Use:   "diff [FILE]",
		Short: "Show how an edge file differs from what is in effect",
		Long: `Show how an edge file differs from what is in effect: OLD is in effect, NEW stands in the file. Without FILE the edge compares
the file that it was started with, as it is on its disk now. Nothing is changed; the exit code is 0 whether or not they differ.`,
		Args:              asUsage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := g.diff(c, o.dataDir, args)
			if err != nil {
				return err
			}
			if err := g.print(c, r, func(p *page) { showDiff(p, r, strings.Join(args, "")) }); err != nil {
				return err
			}
			if r.Result == adminapi.RefreshInvalid {
				return &faultError{code: ExitUsage, err: errInvalid}
			}
			return nil
		},
	}
	o.register(c)
	return c
}

func (g *globals) diff(c *cobra.Command, dataDir string, args []string) (*adminapi.RefreshReport, error) {
	q := adminapi.RefreshRequest{DryRun: true}
	file := ""
	if len(args) > 0 {
		file = args[0]
		var err error
		if q.File, err = candidate(c, file); err != nil {
			return nil, err
		}
	}
	if dataDir != "" {
		if file == "" {
			return nil, usage(c, fmt.Errorf("--data-dir needs a FILE to compare with"))
		}
		return g.compareOffline(dataDir, file, q)
	}
	client, err := g.client(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Refresh(c.Context(), q)
}

func showDiff(p *page, r *adminapi.RefreshReport, given string) {
	showProblems(p, r, given)
	switch {
	case r.Result == adminapi.RefreshInvalid:
	case len(r.ChangedPaths) == 0:
		p.line("No difference: the file says what is in effect (revision %d).", r.Revision)
	default:
		p.table(changeTable(r.ChangedPaths))
		differences := "differences"
		if len(r.ChangedPaths) == 1 {
			differences = "difference"
		}
		p.line("%d %s from revision %d", len(r.ChangedPaths), differences, r.Revision)
	}
}
