package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newModels(g *globals) *cobra.Command {
	c := newGroup("models", "See the models that clients can ask for")
	c.AddCommand(newModelsList(g), newModelsShow(g))
	return c
}

func newModelsList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all models with the providers that serve them",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			l, err := client.Models(c.Context())
			if err != nil {
				return err
			}
			return g.print(c, l, func(p *page) { p.table(modelTable(l.Models, p.wide)) })
		},
	}
}

func modelTable(models []adminapi.Model, wide bool) *table {
	t := &table{
		columns: []column{{name: "MODEL"}, {name: "AVAILABLE"}, {name: "QUEUED", right: true}, {name: "PROVIDERS"}},
		empty:   "No model is configured.",
	}
	for _, m := range models {
		available := cell{yesNo(m.Available), paintGood}
		if !m.Available {
			available.paint = paintBad
		}
		t.rows = append(t.rows, cells(m.ID, available, m.Queued, modelProviders(m.Providers, wide)))
	}
	return t
}

func modelProviders(candidates []adminapi.ModelCandidate, wide bool) string {
	texts := make([]string, len(candidates))
	for i, c := range candidates {
		texts[i] = c.Provider
		if wide {
			texts[i] += " as " + c.Served
		}
	}
	return strings.Join(texts, ", ")
}
