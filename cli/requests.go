package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newRequests(g *globals) *cobra.Command {
	c := newGroup("requests", "Tell where a request is and where it went")
	c.AddCommand(newRequestsList(g), newRequestsExplain(g))
	return c
}

func newRequestsExplain(g *globals) *cobra.Command {
	var o pastOptions
	c := &cobra.Command{
		Use:   "explain [REQUEST]",
		Short: "Tell why a request waits and what would have to happen, or where it went",
		Long: `Of a request that waits: its place, who is before it, and for each provider that it could have why it can't have it now and
what would have to happen. Of one that runs or has ended: its story, as far as the log reaches back.

Without a request: why all that waits does, summed up by cause.`,
		Example: `  iopctl requests explain
  iopctl requests explain req-5b1f
  iopctl requests explain req-5b1f --at-time 10m
  iopctl requests explain req-5b1f --data-dir ./data/edge-1   # of an edge that is down`,
		Args:              asUsage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completing(requestIDs),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return g.explainAll(c, &o)
			}
			r, err := look(g, c, &o, func(client *adminapi.Client, at adminapi.Moment) (*adminapi.Request, error) {
				r, err := client.Request(c.Context(), args[0], at)
				return r, nearby(c, client, args[0], requestIDs, err)
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

// explainAll tells why all waiters wait.
func (g *globals) explainAll(c *cobra.Command, o *pastOptions) error {
	w, err := look(g, c, o, func(client *adminapi.Client, at adminapi.Moment) (*waiting, error) {
		queue, err := client.Queue(c.Context(), at)
		if err != nil {
			return nil, err
		}
		providers, err := client.Providers(c.Context())
		if err != nil {
			return nil, err
		}
		return &waiting{Pending: queue.Pending, Groups: waitGroups(queue.Waiters, providers.Providers)}, nil
	}, (*offline).waiting)
	if err != nil {
		return err
	}
	return g.print(c, w, func(p *page) { showWaits(p, w) })
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
		slots := fmt.Sprintf("%d in flight", c.InFlight)
		if c.Capacity > 0 {
			slots = fmt.Sprintf("%d of %d slots in use", c.InFlight, c.Capacity)
		}
		if len(c.Holders) > 0 {
			slots += " by lease " + numbers(c.Holders)
		}
		p.line("  %s on %s %s (%s): %s.", c.Provider, orDash(c.Node), adminapi.Condition(c.Reason, false), slots, c.Needed)
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
