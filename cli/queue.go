package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newQueue(g *globals) *cobra.Command {
	c := newGroup("queue", "See the queue: requests that wait for a slot")
	c.AddCommand(newQueueList(g), newQueueCancel(g), newQueueWatch(g))
	return c
}

func newQueueList(g *globals) *cobra.Command {
	var o pastOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List all waiting requests in order, and why each one waits",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := look(g, c, &o, func(client *adminapi.Client, at adminapi.Moment) (*adminapi.WaiterList, error) {
				return client.Queue(c.Context(), at)
			}, (*offline).queue)
			if err != nil {
				return err
			}
			return g.print(c, l, func(p *page) { p.table(waiterTable(l.Waiters)) })
		},
	}
	o.register(c)
	return c
}

func waiterTable(waiters []adminapi.Waiter) *table {
	t := &table{
		columns: []column{
			{name: "POS", right: true},
			{name: "REQUEST"},
			{name: "MODEL"},
			{name: "CLASS"},
			{name: "STATE"},
			{name: "AGE", right: true},
			{name: "ENDS IN", right: true},
			{name: "EDGE", wide: true},
			{name: "INDEX", right: true, wide: true},
			{name: "WAITS FOR"},
		},
		empty: "The queue is empty.",
	}
	for _, w := range waiters {
		state := cell{text: w.State}
		if w.State == "detached" {
			state.paint = paintBusy
		}
		t.rows = append(t.rows, cells(
			w.Position, w.Request, w.Model, w.Class, state, span(w.AgeMS), deadline(w.DeadlineInMS), w.Edge, w.EnqueuedIndex,
			candidates(w.Candidates),
		))
	}
	return t
}

func deadline(ms *int64) string {
	if ms == nil {
		return "never"
	}
	return span(*ms)
}

func candidates(list []adminapi.Candidate) string {
	texts := make([]string, len(list))
	for i, c := range list {
		if texts[i] = c.Provider; c.Reason != "" {
			texts[i] = fmt.Sprintf("%s (%s)", c.Provider, c.Reason)
		}
	}
	return strings.Join(texts, ", ")
}
