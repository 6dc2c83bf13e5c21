package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newLeases(g *globals) *cobra.Command {
	c := newGroup("leases", "See the leases: requests that hold a slot")
	c.AddCommand(newLeasesList(g), newLeasesInspect(g), newLeasesWatch(g))
	return c
}

func newLeasesList(g *globals) *cobra.Command {
	var o pastOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List all leases",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := g.leases(c, &o)
			if err != nil {
				return err
			}
			return g.print(c, l, func(p *page) { p.table(leaseTable(l.Leases)) })
		},
	}
	o.register(c)
	return c
}

func (g *globals) leases(c *cobra.Command, o *pastOptions) (*adminapi.LeaseList, error) {
	return look(g, c, o, func(client *adminapi.Client, at adminapi.Moment) (*adminapi.LeaseList, error) {
		return client.Leases(c.Context(), at)
	}, (*offline).leases)
}

func leaseTable(leases []adminapi.Lease) *table {
	t := &table{
		columns: []column{
			{name: "LEASE", right: true},
			{name: "REQUEST"},
			{name: "MODEL"},
			{name: "PROVIDER"},
			{name: "NODE", wide: true},
			{name: "CLASS"},
			{name: "STATE"},
			{name: "EDGE", wide: true},
			{name: "SESSION", right: true, wide: true},
			{name: "GEN", right: true, wide: true},
			{name: "INDEX", right: true, wide: true},
			{name: "AGE", right: true},
		},
		empty: "No request holds a lease.",
	}
	for _, l := range leases {
		t.rows = append(t.rows, cells(
			l.ID, l.Request, l.Model, l.Provider, l.Node, l.Class, cell{l.State, leasePaint(l.State)}, l.Edge, l.Session,
			l.Generation, l.GrantedIndex, span(l.AgeMS),
		))
	}
	return t
}

func leasePaint(state string) paint {
	if state == "fencing" {
		return paintBad
	}
	return paintGood
}

func newLeasesInspect(g *globals) *cobra.Command {
	var o pastOptions
	c := &cobra.Command{
		Use:   "inspect LEASE|REQUEST",
		Short: "Show a lease and its whole story, from the log",
		Example: `  iopctl leases inspect 17
  iopctl leases inspect req-5b1f -o json
  iopctl leases inspect 17 --data-dir ./data/edge-1   # of an edge that is down
  iopctl leases inspect 17 --at-time 10m              # as it was ten minutes ago`,
		Args:              exactly(1),
		ValidArgsFunction: g.completing(leaseIDs),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := g.lease(c, &o, args[0])
			if err != nil {
				return err
			}
			return g.print(c, l, func(p *page) { showLease(p, l) })
		},
	}
	o.register(c)
	return c
}

func (g *globals) lease(c *cobra.Command, o *pastOptions, id string) (*adminapi.LeaseDetail, error) {
	return look(g, c, o, func(client *adminapi.Client, at adminapi.Moment) (*adminapi.LeaseDetail, error) {
		l, err := client.Lease(c.Context(), id, at)
		return l, nearby(c, client, id, leaseIDs, err)
	}, func(x *offline) (*adminapi.LeaseDetail, error) { return x.lease(id) })
}

func showLease(p *page, l *adminapi.LeaseDetail) {
	if l.State == "returned" {
		p.fields(
			[2]string{"Lease", strconv.FormatUint(l.ID, 10)}, [2]string{"State", "returned"}, [2]string{"Request", l.Request},
			[2]string{"Provider", fmt.Sprintf("%s on node %s, generation %d", l.Provider, l.Node, l.Generation)},
		)
	} else {
		showHeld(p, l)
	}
	if l.Story != nil {
		p.line("")
		showStory(p, l.Story)
	}
}

func showHeld(p *page, l *adminapi.LeaseDetail) {
	p.fields(
		[2]string{"Lease", strconv.FormatUint(l.ID, 10)},
		[2]string{"State", l.State},
		[2]string{"Request", l.Request},
		[2]string{"Model", fmt.Sprintf("%s (at the provider: %s)", l.Model, l.Served)},
		[2]string{"Class", fmt.Sprintf("%s, %d input tokens estimated", l.Class, l.InputTokens)},
		[2]string{"Provider", fmt.Sprintf("%s on node %s, generation %d", l.Provider, l.Node, l.Generation)},
		[2]string{"Edge", fmt.Sprintf("%s, session %d", l.Edge, l.Session)},
		[2]string{"Enqueued", fmt.Sprintf("%s, index %d, number %d in the order of all", l.EnqueuedAt.Format(time.RFC3339), l.EnqueuedIndex, l.Enqueue)},
		[2]string{"Granted", fmt.Sprintf("%s, index %d, after waiting %s", l.GrantedAt.Format(time.RFC3339), l.GrantedIndex, span(l.WaitedMS))},
		[2]string{"Age", span(l.AgeMS)},
		[2]string{"Fell over from", strings.Join(l.Excluded, ", ")},
	)
}
