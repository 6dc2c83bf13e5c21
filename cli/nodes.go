package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newNodes(g *globals) *cobra.Command {
	c := newGroup("nodes", "See, add and drain the nodes: machines that serve providers")
	target := func(id string) adminapi.Drain { return adminapi.Drain{Node: id} }
	c.AddCommand(newNodesList(g), newNodesShow(g), newNodesAdd(g), newNodesToken(g), newDrain(g, "node", target), newUndrain(g, "node", target))
	return c
}

func newNodesList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all nodes with their links",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			l, err := client.Nodes(c.Context())
			if err != nil {
				return err
			}
			return g.print(c, l, func(p *page) { p.table(nodeTable(l.Nodes)) })
		},
	}
}

func nodeTable(nodes []adminapi.Node) *table {
	t := &table{
		columns: []column{{name: "NODE"}, {name: "ALIAS"}, {name: "CONNECTED"}, {name: "LINKS"}, {name: "DRAINING", wide: true}, {name: "VERSION", wide: true}},
		empty:   "No node is configured.",
	}
	for _, n := range nodes {
		connected := cell{yesNo(n.Connected), paintGood}
		if !n.Connected {
			connected.paint = paintBad
		}
		if n.Draining {
			connected = cell{yesNo(n.Connected) + ", drained", paintBusy}
		}
		t.rows = append(t.rows, cells(n.ID, n.Alias, connected, nodeLinks(n.Links), yesNo(n.Draining), n.Version))
	}
	return t
}

func nodeLinks(links []adminapi.NodeLink) string {
	texts := make([]string, len(links))
	for i, l := range links {
		texts[i] = fmt.Sprintf("%s#%d %s", l.Edge, l.Generation, l.State)
	}
	return strings.Join(texts, ", ")
}
