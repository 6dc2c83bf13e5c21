package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newConfigHistory(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "history [REVISION]",
		Short: "Show the last revisions of the configuration, or what one of them changed",
		Long: `Show the revisions of the configuration that the log still tells of, at most 100, the newest first. SOURCE tells what brought a
revision: start (the file that an edge was started with), refresh (also by SIGHUP or nodes add), or earlier: what brought it is not
in the log any more.

With REVISION: what it changed. 'iopctl config show --revision' shows all of it.`,
		Example: "  iopctl config history\n  iopctl config history 7",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			h, err := client.ConfigHistory(c.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return g.print(c, h, func(p *page) {
					p.table(historyTable(h))
					if h.Reading {
						p.line("Older ones are still being read from the log: ask again.")
					}
				})
			}
			r, err := revisionOf(c, h, args[0])
			if err != nil {
				return err
			}
			return g.print(c, r, func(p *page) { showRevision(p, r) })
		},
	}
}

func revisionOf(c *cobra.Command, h *adminapi.ConfigHistory, text string) (*adminapi.ConfigRevision, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, usage(c, fmt.Errorf("%q is no revision: it is a number", text))
	}
	at := slices.IndexFunc(h.Revisions, func(r adminapi.ConfigRevision) bool { return r.Revision == n })
	if at < 0 {
		return nil, &faultError{
			code: ExitFailure, err: fmt.Errorf("the edge that answers knows nothing of revision %d", n),
			cure: "'iopctl config history' lists those that its log still has; ask another one with --edge",
		}
	}
	return &h.Revisions[at], nil
}

func historyTable(h *adminapi.ConfigHistory) *table {
	t := &table{
		columns: []column{
			{name: "REVISION", right: true},
			{name: "INDEX", right: true},
			{name: "TIME"},
			{name: "EDGE"},
			{name: "SOURCE"},
			{name: "CHANGES", right: true},
			{name: "PATHS", wide: true},
		},
		empty: "No configuration was applied yet.",
	}
	for i := range h.Revisions {
		r := &h.Revisions[i]
		changes, paths := "", make([]string, 0, len(r.Changes))
		if r.Changes != nil {
			changes = strconv.Itoa(len(r.Changes) + r.ChangesLeft)
		}
		for _, x := range r.Changes {
			paths = append(paths, x.Path)
		}
		t.rows = append(t.rows, cells(r.Revision, r.Index, r.Time.Format(time.RFC3339), r.Edge, r.Source, changes, strings.Join(paths, ", ")))
	}
	return t
}

func showRevision(p *page, r *adminapi.ConfigRevision) {
	p.fields(
		[2]string{"Revision", strconv.FormatUint(r.Revision, 10)},
		[2]string{"Read", fmt.Sprintf("%s, index %d", r.Time.Format(time.RFC3339), r.Index)},
		[2]string{"Came by", strings.TrimSpace(r.Source + " " + r.Edge)},
	)
	p.line("")
	if r.Changes == nil {
		p.line("What was before it is not known to the edge that answers.")
		return
	}
	t := changeTable(r.Changes)
	t.empty = "It changed nothing."
	p.table(t)
	if r.ChangesLeft > 0 {
		p.line("And %d more; compare 'iopctl config show --revision' of both.", r.ChangesLeft)
	}
}
