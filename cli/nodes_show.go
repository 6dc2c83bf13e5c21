package cli

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// nodeDetail is the JSON of nodes show.
type nodeDetail struct {
	adminapi.Node
	Providers []adminapi.Provider `json:"providers"` // of the node
	Leases    []adminapi.Lease    `json:"leases"`    // that it carries
}

func newNodesShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show one node: its links, its providers, and what runs on it",
		Example:           "  iopctl nodes show gpu-node",
		Args:              exactly(1),
		ValidArgsFunction: g.completing(nodeIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			n, err := nodeOf(c.Context(), client, args[0])
			if err != nil {
				return err
			}
			return g.print(c, n, func(p *page) { showNode(p, n) })
		},
	}
}

func nodeOf(ctx context.Context, client *adminapi.Client, name string) (*nodeDetail, error) {
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(nodes.Nodes, func(n adminapi.Node) bool { return n.ID == name })
	if at < 0 {
		return nil, unknown("node", name, idsOf(nodes.Nodes, func(n *adminapi.Node) id { return id{name: n.ID} }))
	}
	out := &nodeDetail{Node: nodes.Nodes[at], Providers: []adminapi.Provider{}, Leases: []adminapi.Lease{}}
	providers, err := client.Providers(ctx)
	if err != nil {
		return nil, err
	}
	leases, err := client.Leases(ctx, adminapi.Moment{})
	if err != nil {
		return nil, err
	}
	for i := range providers.Providers {
		if providers.Providers[i].Node == name {
			out.Providers = append(out.Providers, providers.Providers[i])
		}
	}
	for i := range leases.Leases {
		if leases.Leases[i].Node == name {
			out.Leases = append(out.Leases, leases.Leases[i])
		}
	}
	return out, nil
}

func showNode(p *page, n *nodeDetail) {
	connected := "yes"
	if !n.Connected {
		connected = "no: noded does not run there, or reaches no edge; see its log"
	}
	p.fields(
		[2]string{"Node", n.ID},
		[2]string{"Alias", n.Alias},
		[2]string{"Connected", connected},
		[2]string{"Links", nodeLinks(n.Links)},
		[2]string{"Draining", yesNo(n.Draining)},
		[2]string{"Version", n.Version},
		[2]string{"In flight", strconv.Itoa(len(n.Leases))},
	)
	p.line("")
	p.table(providerTable(n.Providers))
	if len(n.Leases) > 0 {
		p.line("")
		p.table(leaseTable(n.Leases))
	}
}
