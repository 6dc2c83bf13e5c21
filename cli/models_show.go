package cli

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// modelDetail is the JSON of models show.
type modelDetail struct {
	ID        string          `json:"id"`
	Available bool            `json:"available"` // a candidate is enabled, healthy, not draining and linked
	Queued    int             `json:"queued"`
	Providers []modelProvider `json:"providers"` // that serve it, by id
	Waiters   []waitGroup     `json:"waiters"`   // why those that want it wait
}

// modelProvider is a provider, and the model's name there.
type modelProvider struct {
	adminapi.Provider
	Served string `json:"served"` // the model's name at the provider
}

func newModelsShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:               "show MODEL",
		Short:             "Show one model: who serves it, under which name, and why requests for it wait",
		Example:           "  iopctl models show ornith:35b",
		Args:              exactly(1),
		ValidArgsFunction: g.completing(modelIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			m, err := modelOf(c.Context(), client, args[0])
			if err != nil {
				return err
			}
			return g.print(c, m, func(p *page) { showModel(p, m) })
		},
	}
}

func modelOf(ctx context.Context, client *adminapi.Client, name string) (*modelDetail, error) {
	models, err := client.Models(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(models.Models, func(m adminapi.Model) bool { return m.ID == name })
	if at < 0 {
		return nil, unknown("model", name, idsOf(models.Models, func(m *adminapi.Model) id { return id{name: m.ID} }))
	}
	providers, err := client.Providers(ctx)
	if err != nil {
		return nil, err
	}
	queue, err := client.Queue(ctx, adminapi.Moment{})
	if err != nil {
		return nil, err
	}
	m := &models.Models[at]
	out := &modelDetail{ID: m.ID, Available: m.Available, Queued: m.Queued, Providers: []modelProvider{}, Waiters: []waitGroup{}}
	for _, x := range m.Providers {
		i := slices.IndexFunc(providers.Providers, func(p adminapi.Provider) bool { return p.ID == x.Provider })
		if i >= 0 {
			out.Providers = append(out.Providers, modelProvider{providers.Providers[i], x.Served})
		}
	}
	for _, w := range waitGroups(queue.Waiters, providers.Providers) {
		if w.Model == name {
			out.Waiters = append(out.Waiters, w)
		}
	}
	return out, nil
}

func showModel(p *page, m *modelDetail) {
	available := "yes"
	if !m.Available {
		available = "no: none of its providers is enabled, healthy, linked and not draining"
	}
	p.fields([2]string{"Model", m.ID}, [2]string{"Available", available}, [2]string{"Queued", strconv.Itoa(m.Queued)})
	p.line("")
	t := &table{
		columns: []column{
			{name: "PROVIDER"},
			{name: "NODE"},
			{name: "SERVED AS"},
			{name: "STATUS"},
			{name: "IN FLIGHT", right: true},
			{name: "LONG", right: true},
			{name: "PRIORITY", right: true, wide: true},
			{name: "CAUSE", wide: true},
		},
		empty: "No provider serves it.",
	}
	for i := range m.Providers {
		v := &m.Providers[i]
		t.rows = append(t.rows, cells(
			v.ID, v.Node, v.Served, cell{v.Status, statusPaint(v.Status)}, share(v.InFlight, v.Capacity), share(v.LongInFlight, v.LongCapacity),
			v.Priority, v.Cause,
		))
	}
	p.table(t)
	if len(m.Waiters) > 0 {
		p.line("")
		showGroups(p, m.Waiters)
	}
}
