package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newProvidersShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one provider, and what its backend tells of itself",
		Long: `Show one provider, and what its backend tells of itself: the node asks it now. What it tells is for people; what a provider may
have in flight is its capacity, whatever its backend says.`,
		Args:              exactly(1),
		ValidArgsFunction: g.completing(providerIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			d, err := client.Provider(c.Context(), args[0])
			if err != nil {
				return nearby(c, client, args[0], providerIDs, err)
			}
			return g.print(c, d, func(p *page) { showProvider(p, d) })
		},
	}
}

func showProvider(p *page, d *adminapi.ProviderDetail) {
	kind := d.Type
	if d.Label != "" {
		kind = fmt.Sprintf("%s (%s)", d.Label, d.Type)
	}
	p.fields(
		[2]string{"Provider", fmt.Sprintf("%s on node %s, generation %d", d.ID, d.Node, d.Generation)},
		[2]string{"Type", fmt.Sprintf("%s, over adapter %s (%s)", kind, d.Adapter, d.AdapterType)},
		[2]string{"Status", providerStatus(d)},
		[2]string{"Models", strings.Join(d.Models, ", ")},
		[2]string{"In flight", fmt.Sprintf("%s, long %s", share(d.InFlight, d.Capacity), share(d.LongInFlight, d.LongCapacity))},
		[2]string{"Queued", fmt.Sprintf("%d that could use it, %d of them long", d.Queued, d.LongQueued)},
		[2]string{"Priority", strconv.Itoa(d.Priority)},
		[2]string{"Health check", healthCheck(d)},
	)
	p.line("")
	showBackend(p, d.Backend)
}

func providerStatus(d *adminapi.ProviderDetail) string {
	if d.Cause != "" {
		return d.Status + ": " + d.Cause
	}
	return d.Status
}

func healthCheck(d *adminapi.ProviderDetail) string {
	if d.HealthEvery == 0 {
		return "none: only runs tell"
	}
	path := d.HealthPath
	if path == "" {
		path = "the path of its type"
	}
	return fmt.Sprintf("%s every %s", path, span(d.HealthEvery))
}

func showBackend(p *page, b *adminapi.Backend) {
	p.line("The backend says of itself:")
	var rows [][2]string
	for _, name := range slices.Sorted(maps.Keys(b.Words)) {
		rows = append(rows, [2]string{"  " + name, b.Words[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Numbers)) {
		rows = append(rows, [2]string{"  " + name, strconv.FormatFloat(b.Numbers[name], 'f', -1, 64)})
	}
	if len(b.Models) > 0 {
		rows = append(rows, [2]string{"  models", strings.Join(b.Models, ", ")})
	}
	if b.Error != "" {
		rows = append(rows, [2]string{"  missing", strings.ReplaceAll(b.Error, "\n", "; ")})
	}
	if len(b.Sources) > 0 {
		rows = append(rows, [2]string{"  read from", strings.Join(b.Sources, ", ")})
	}
	p.fields(rows...)
}
