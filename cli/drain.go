package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// drainOptions are the flags of drain.
type drainOptions struct {
	wait bool
	max  time.Duration // of the wait; 0 = as long as it takes
}

// drainPoll is the time between two looks at what still runs.
const drainPoll = 500 * time.Millisecond

// drained is what drain shows at last.
type drained struct {
	adminapi.Drain
	InFlight *int     `json:"in_flight,omitempty"`     // after --wait
	Still    []string `json:"still_drained,omitempty"` // after undrain: the node of the provider, or providers of the node
}

// newDrain makes the drain command of nodes or providers; target puts an id into the request.
func newDrain(g *globals, noun string, target func(id string) adminapi.Drain) *cobra.Command {
	var o drainOptions
	c := &cobra.Command{
		Use:   "drain ID",
		Short: "Stop new requests to a " + noun + "; those that run go on",
		Long: fmt.Sprintf(`Stop new requests to a %[1]s. What runs goes on to its end; what waits takes another candidate, or is told that there is none.
It stays so, over restarts of all programs, until 'iopctl %[1]ss undrain'.

With --wait the command ends when nothing runs on it any more. It exits with 0 then, and with 6 if --wait-timeout passed first (the
%[1]s stays drained).`, noun),
		Example:           fmt.Sprintf("  iopctl %[1]ss drain ID --wait && echo 'nothing runs there'", noun),
		Args:              exactly(1),
		ValidArgsFunction: g.completing(targetIDs(noun)),
		RunE: func(c *cobra.Command, args []string) error {
			d := target(args[0])
			d.On = true
			return g.drain(c, d, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.wait, "wait", false, "wait until nothing runs on it, and show how it becomes less")
	f.DurationVar(&o.max, "wait-timeout", 0, "how `long` to wait at most, 0 = as long as it takes")
	return c
}

func newUndrain(g *globals, noun string, target func(id string) adminapi.Drain) *cobra.Command {
	return &cobra.Command{
		Use:               "undrain ID",
		Short:             "Let new requests go to a " + noun + " again",
		Args:              exactly(1),
		ValidArgsFunction: g.completing(targetIDs(noun)),
		RunE:              func(c *cobra.Command, args []string) error { return g.drain(c, target(args[0]), drainOptions{}) },
	}
}

func (g *globals) drain(c *cobra.Command, d adminapi.Drain, o drainOptions) error {
	if o.max < 0 {
		return usage(c, fmt.Errorf("--wait-timeout %s is negative", o.max))
	}
	client, err := g.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	done, err := client.Drain(c.Context(), d)
	if err != nil {
		return nearby(c, client, cmp.Or(d.Provider, d.Node), targetIDs(drainNoun(d)), leaderless(err))
	}
	out := &drained{Drain: *done}
	var late error
	if o.wait {
		n, err := g.awaitDrained(c, client, done, o.max)
		if err != nil && n == 0 {
			return err
		}
		out.InFlight, late = &n, err
	}
	if !d.On {
		out.Still = stillDrained(c.Context(), client, done)
	}
	if err := g.print(c, out, func(p *page) { p.line("%s", drainText(out)) }); err != nil {
		return err
	}
	return late
}

// awaitDrained looks until nothing runs on the target. With an error n is what still runs; 0 = the looking itself failed.
func (g *globals) awaitDrained(c *cobra.Command, client *adminapi.Client, d *adminapi.Drain, most time.Duration) (n int, err error) {
	ctx, cancel := c.Context(), context.CancelFunc(func() {})
	if most > 0 {
		ctx, cancel = context.WithTimeout(ctx, most)
	}
	defer cancel()
	p := g.progress(c, "drained; waiting until nothing runs on "+drainName(d))
	defer p.done()
	for {
		list, err := client.Providers(c.Context())
		if err != nil {
			return 0, fmt.Errorf("wait until nothing runs: %w", err)
		}
		if n = running(list.Providers, d); n == 0 {
			return 0, nil
		}
		p.say("%s: %s", drainName(d), still(n))
		select {
		case <-time.After(drainPoll):
		case <-ctx.Done():
			return n, &faultError{
				code: ExitStillRunning, err: fmt.Errorf("%s: %s", drainName(d), still(n)),
				cure: "wait longer, or see which they are with 'iopctl leases list'; it stays drained",
			}
		}
	}
}

// running is what is in flight on the target.
func running(providers []adminapi.Provider, d *adminapi.Drain) int {
	n := 0
	for _, p := range providers {
		if d.Provider == p.ID || d.Provider == "" && d.Node == p.Node {
			n += p.InFlight
		}
	}
	return n
}

// drainNoun is what kind of thing is drained.
func drainNoun(d adminapi.Drain) string {
	if d.Provider != "" {
		return "provider"
	}
	return "node"
}

func targetIDs(noun string) lister {
	if noun == "provider" {
		return providerIDs
	}
	return nodeIDs
}

func drainName(d *adminapi.Drain) string {
	if d.Provider != "" {
		return "provider " + d.Provider
	}
	return "node " + d.Node
}

// drainedNodes are the nodes that are drained, as far as the edge tells.
func drainedNodes(ctx context.Context, client *adminapi.Client) (ids []string) {
	l, err := client.Nodes(ctx)
	if err != nil {
		return nil
	}
	for _, n := range l.Nodes {
		if n.Draining {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// stillDrained is what keeps requests away from a target that was undrained: the drain of a provider's node, or those of
// the node's providers. It is nil if nothing does or nobody tells.
func stillDrained(ctx context.Context, client *adminapi.Client, d *adminapi.Drain) (ids []string) {
	if d.Provider != "" {
		for _, n := range drainedNodes(ctx, client) {
			if n == d.Node {
				return []string{n}
			}
		}
		return nil
	}
	l, err := client.Providers(ctx)
	if err != nil {
		return nil
	}
	for _, p := range l.Providers {
		if p.Node == d.Node && p.Draining {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

func still(n int) string {
	switch n {
	case 0:
		return "nothing runs on it"
	case 1:
		return "1 request still runs"
	}
	return fmt.Sprintf("%d requests still run", n)
}

func drainText(d *drained) string {
	switch name := drainName(&d.Drain); {
	case !d.On && d.Provider != "" && len(d.Still) > 0:
		return fmt.Sprintf("%s is not drained any more, but its node is: it takes requests again after 'iopctl nodes undrain %s'.", name, shQuote(d.Node))
	case !d.On && len(d.Still) > 0:
		return fmt.Sprintf("%s takes requests again, but not for what is drained by itself: 'iopctl providers undrain %s'.", name, strings.Join(d.Still, "', 'iopctl providers undrain "))
	case !d.On:
		return name + " takes requests again."
	case d.InFlight == nil:
		return name + " gets no new requests. Those that run go on."
	case *d.InFlight == 0:
		return name + " gets no new requests, and nothing runs on it."
	default:
		return fmt.Sprintf("%s gets no new requests; %s.", name, still(*d.InFlight))
	}
}
