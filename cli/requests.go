package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newRequests(g *globals) *cobra.Command {
	c := newGroup("requests", "Tell where a request is and where it went")
	c.AddCommand(newRequestsExplain(g))
	return c
}

func newRequestsExplain(g *globals) *cobra.Command {
	var o pastOptions
	c := &cobra.Command{
		Use:   "explain REQUEST",
		Short: "Tell why a request waits and what would have to happen, or where it went",
		Long: `Of a request that waits: its place, who is before it, and for each provider that it could have why it can't have it now and
what would have to happen. Of one that runs or has ended: its story, as far as the log reaches back.`,
		Example: `  iopctl requests explain req-5b1f
  iopctl requests explain req-5b1f --at-time 10m
  iopctl requests explain req-5b1f --data-dir ./data/edge-1   # of an edge that is down`,
		Args: exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := look(g, c, &o, func(client *adminapi.Client, at adminapi.Moment) (*adminapi.Request, error) {
				return client.Request(c.Context(), args[0], at)
			}, func(x *offline) (*adminapi.Request, error) { return x.request(args[0]) })
			if err != nil {
				return err
			}
			return g.print(c, r, func(p *page) { showRequest(p, r) })
		},
	}
	o.register(c)
	return c
}

func showRequest(p *page, r *adminapi.Request) {
	switch {
	case r.Waiter != nil:
		showWaiting(p, r)
	case r.Lease != nil:
		l := r.Lease
		p.line("Request %s holds lease %d of provider %s on node %s (%s) for %s.", r.Request, l.ID, l.Provider, l.Node, l.State, span(l.AgeMS))
	default:
		p.line("Request %s has ended.", r.Request)
	}
	p.line("")
	showStory(p, r.Story)
}

func showWaiting(p *page, r *adminapi.Request) {
	w := r.Waiter
	end := "it has no deadline"
	if w.DeadlineInMS != nil {
		end = "its deadline is in " + span(*w.DeadlineInMS)
	}
	p.line("Request %s is number %d in the queue, for model %s (%s). It has waited for %s; %s.",
		r.Request, w.Position, w.Model, w.Class, span(w.AgeMS), end)
	if w.State == "detached" {
		p.line("It is detached: the session of its edge ended. A client that sends it again takes its place over.")
	}
	x := r.Explanation
	if x == nil {
		return
	}
	p.line("%s", ahead(x))
	for _, c := range x.Candidates {
		state := c.Reason
		if c.Reason == "" {
			state = "free"
		}
		slots := fmt.Sprintf("%d in flight", c.InFlight)
		if c.Capacity > 0 {
			slots = fmt.Sprintf("%d of %d slots in use", c.InFlight, c.Capacity)
		}
		if len(c.Holders) > 0 {
			slots += " by lease " + numbers(c.Holders)
		}
		p.line("  %s on %s is %s (%s): %s.", c.Provider, orDash(c.Node), state, slots, c.Needed)
	}
	if len(x.Candidates) == 0 {
		p.line("  No provider serves its model any more.")
	}
}

func ahead(x *adminapi.Explanation) string {
	if x.AheadCount == 0 {
		return "Nobody who is before it could take a slot that it could take."
	}
	names := make([]string, 0, len(x.Ahead))
	for _, a := range x.Ahead {
		names = append(names, fmt.Sprintf("%s (number %d, model %s, %s)", a.Request, a.Position, a.Model, a.Class))
	}
	if more := x.AheadCount - len(x.Ahead); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d before it could take a slot that it could take: %s.", x.AheadCount, strings.Join(names, ", "))
}

func numbers(list []uint64) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(list), "[]")), ", ")
}
