package cli

import (
	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// requestList is the JSON of requests list.
type requestList struct {
	Requests []requestRow `json:"requests"` // those that run by lease, then those that wait in the order of the queue
}

// requestRow is a request in being.
type requestRow struct {
	Request  string `json:"request"`
	State    string `json:"state"` // held, fencing; waiting, detached
	Model    string `json:"model"`
	Class    string `json:"class"` // normal, long
	Edge     string `json:"edge"`
	AgeMS    int64  `json:"age_ms"`     // of one that runs since its grant, of one that waits since its first admission
	Lease    uint64 `json:"lease"`      // 0 = it waits
	Provider string `json:"provider"`   // "" = it waits
	Position int    `json:"position"`   // in the queue, from 1; 0 = it runs
	WaitsFor string `json:"waits_for"`  // for people; "" = it runs
	EndsInMS *int64 `json:"ends_in_ms"` // until a waiter's deadline; null = none
}

func newRequestsList(g *globals) *cobra.Command {
	var o pastOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List all requests there are: those that run and those that wait",
		Example: `  iopctl requests list
  iopctl requests list --at-time 10m                  # ten minutes ago
  iopctl requests list --data-dir ./data/edge-1       # of an edge that is down`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := look(g, c, &o, func(client *adminapi.Client, at adminapi.Moment) (*requestList, error) {
				leases, err := client.Leases(c.Context(), at)
				if err != nil {
					return nil, err
				}
				queue, err := client.Queue(c.Context(), at)
				return requestsOf(leases, queue), err
			}, (*offline).requests)
			if err != nil {
				return err
			}
			return g.print(c, l, func(p *page) { p.table(requestTable(l.Requests)) })
		},
	}
	o.register(c)
	return c
}

func (x *offline) requests() (*requestList, error) {
	leases, err := x.leases()
	if err != nil {
		return nil, err
	}
	queue, err := x.queue()
	return requestsOf(leases, queue), err
}

// requestsOf joins both lists. They may be of different moments: what is in both has been granted in between.
func requestsOf(leases *adminapi.LeaseList, queue *adminapi.WaiterList) *requestList {
	out := &requestList{Requests: []requestRow{}}
	if queue == nil {
		return out
	}
	waits := make(map[string]bool, len(queue.Waiters))
	for i := range queue.Waiters {
		waits[queue.Waiters[i].Request] = true
	}
	for i := range leases.Leases {
		l := &leases.Leases[i]
		if waits[l.Request] {
			continue
		}
		out.Requests = append(out.Requests, requestRow{
			Request: l.Request, State: l.State, Model: l.Model, Class: l.Class, Edge: l.Edge, AgeMS: l.AgeMS, Lease: l.ID, Provider: l.Provider,
		})
	}
	for i := range queue.Waiters {
		w := &queue.Waiters[i]
		out.Requests = append(out.Requests, requestRow{
			Request: w.Request, State: w.State, Model: w.Model, Class: w.Class, Edge: w.Edge, AgeMS: w.AgeMS, Position: w.Position,
			WaitsFor: candidates(w.Candidates), EndsInMS: w.DeadlineInMS,
		})
	}
	return out
}

func requestTable(rows []requestRow) *table {
	t := &table{
		columns: []column{
			{name: "REQUEST"},
			{name: "MODEL"},
			{name: "CLASS", wide: true},
			{name: "STATE"},
			{name: "AGE", right: true},
			{name: "EDGE", wide: true},
			{name: "LEASE", right: true, wide: true},
			{name: "WHERE"},
		},
		empty: "There is no request.",
	}
	for i := range rows {
		r := &rows[i]
		state, where, lease := cell{r.State, leasePaint(r.State)}, r.Provider, ""
		if r.Lease == 0 {
			state, where = cell{r.State, paintBusy}, "waits for "+orDash(r.WaitsFor)
		} else {
			lease = numberOr(&r.Lease)
		}
		t.rows = append(t.rows, cells(r.Request, r.Model, r.Class, state, span(r.AgeMS), r.Edge, lease, where))
	}
	return t
}
