package cli

import (
	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newProviders(g *globals) *cobra.Command {
	c := newGroup("providers", "See and drain the providers: backends with their slots")
	target := func(id string) adminapi.Drain { return adminapi.Drain{Provider: id} }
	c.AddCommand(newProvidersList(g), newProvidersShow(g), newDrain(g, "provider", target), newUndrain(g, "provider", target))
	return c
}

func newProvidersList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all providers with their state and use",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			l, err := client.Providers(c.Context())
			if err != nil {
				return err
			}
			return g.print(c, l, func(p *page) { p.table(providerTable(l.Providers)) })
		},
	}
}

func providerTable(providers []adminapi.Provider) *table {
	t := &table{
		columns: []column{
			{name: "PROVIDER"},
			{name: "NODE"},
			{name: "TYPE", wide: true},
			{name: "STATUS"},
			{name: "HEALTH", wide: true},
			{name: "IN FLIGHT", right: true},
			{name: "LONG", right: true},
			{name: "QUEUED", right: true},
			{name: "LONG QUEUED", right: true, wide: true},
			{name: "PRIORITY", right: true, wide: true},
			{name: "ENABLED", wide: true},
			{name: "DRAINING", wide: true},
			{name: "GEN", right: true, wide: true},
			{name: "CAUSE", wide: true},
		},
		empty: "No provider is configured.",
	}
	for _, v := range providers {
		t.rows = append(t.rows, cells(
			v.ID, v.Node, v.Type, cell{v.Status, statusPaint(v.Status)}, v.Health, share(v.InFlight, v.Capacity),
			share(v.LongInFlight, v.LongCapacity), v.Queued, v.LongQueued, v.Priority, yesNo(v.Enabled), yesNo(v.Draining),
			v.Generation, v.Cause,
		))
	}
	return t
}

func statusPaint(status string) paint {
	switch status {
	case "available":
		return paintGood
	case "full", "draining", "disabled":
		return paintBusy
	}
	return paintBad
}
