package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newStatus(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the whole at a glance: leader, queue, providers, links",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			s, err := client.Status(c.Context())
			if err != nil {
				return err
			}
			return g.print(c, s, func(p *page) {
				members, _ := client.Cluster(c.Context()) // an older edge does not tell; then they are not shown
				showStatus(p, s, members)
			})
		},
	}
}

func showStatus(p *page, s *adminapi.Status, members *adminapi.Cluster) {
	leader := fmt.Sprintf("%s, term %d", orDash(s.Leader), s.Term)
	if s.Leader == "" {
		leader = "none known: nothing is admitted until there is one"
	}
	fields := [][2]string{
		{"Edge", fmt.Sprintf("%s (%s)", s.Edge, s.Role)},
		{"Leader", leader},
		{"Applied", applied(s)},
		{"Queue", fmt.Sprintf("%d of %d pending, %d long", s.Queue.Pending, s.Queue.Max, s.Queue.LongPending)},
	}
	if members != nil && len(members.Members) > 1 {
		fields = slices.Insert(fields, 2, [2]string{"Members", glance(members)})
	}
	p.fields(fields...)
	p.line("")
	p.table(providerTable(s.Providers))
	p.line("")
	p.table(linkTable(s.Links))
}

func applied(s *adminapi.Status) string {
	text := fmt.Sprintf("index %d, configuration revision %d", s.AppliedIndex, s.Revision)
	if s.Lag > 0 {
		text += fmt.Sprintf("; %d entries behind its log", s.Lag)
	}
	return text
}

func linkTable(links []adminapi.Link) *table {
	t := &table{
		columns: []column{{name: "NODE"}, {name: "EDGE"}, {name: "LINK"}, {name: "GEN", right: true}, {name: "LEASES", right: true}},
		empty:   "No node is linked.",
	}
	for _, l := range links {
		t.rows = append(t.rows, cells(l.Node, l.Edge, cell{l.State, linkPaint(l.State)}, l.Generation, l.Leases))
	}
	return t
}

func linkPaint(state string) paint {
	switch state {
	case "ready":
		return paintGood
	case "pending":
		return paintBusy
	}
	return paintBad
}
