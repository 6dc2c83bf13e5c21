package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// memberWait are the flags of what waits for a replica.
type memberWait struct {
	wait bool
	max  time.Duration // 0 = as long as it takes
}

func (o *memberWait) register(c *cobra.Command) {
	c.Flags().DurationVar(&o.max, "wait-timeout", 0, "how `long` to wait at most, 0 = as long as it takes")
}

// memberPoll is the time between two looks at a replica that catches up.
const memberPoll = 300 * time.Millisecond

func newClusterAdd(g *globals) *cobra.Command {
	var o memberWait
	c := &cobra.Command{
		Use:   "add ID ADDRESS",
		Short: "Take a replica in, without a stop",
		Long: `Take a replica in. ADDRESS is that of its cluster listener (edge.listen.cluster), as the others reach it. It follows without a
vote until it has caught up, and gets one then. Start it before or after, with an empty edge.data_dir, an edge.id of its own, and
edge.cluster.peers that name it and the replicas there are.

With --wait the command ends when the replica votes.`,
		Example: "  iopctl cluster add edge-2 gw2:7400 --wait",
		Args:    exactly(2),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.adding(c, args[1], o.max)
			if err != nil {
				return err
			}
			defer client.Close()
			x, err := client.AddMember(c.Context(), adminapi.MemberRequest{ID: args[0], Address: args[1]})
			if err != nil {
				return leaderless(err)
			}
			if o.wait {
				if x, err = g.awaitVoter(c, client, args[0], o.max); err != nil {
					return err
				}
			} else {
				x = awaitListed(c.Context(), client, x, args[0], true)
			}
			return g.print(c, x, func(p *page) {
				showMembers(p, x)
				showJoined(p, x, args[0])
			})
		},
	}
	o.register(c)
	c.Flags().BoolVar(&o.wait, "wait", false, "wait until it has caught up and votes, and show how far it is")
	return c
}

func (g *globals) adding(c *cobra.Command, address string, most time.Duration) (*adminapi.Client, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, usage(c, fmt.Errorf("%q is not HOST:PORT of a cluster listener", address))
	}
	if most < 0 {
		return nil, usage(c, fmt.Errorf("--wait-timeout %s is negative", most))
	}
	return g.changing(c)
}

// showJoined says what came of taking a replica in.
func showJoined(p *page, x *adminapi.Cluster, id string) {
	p.line("")
	if votes, state := progressOf(x, id); votes {
		p.line("Replica %s votes.", id)
	} else {
		p.line("Replica %s is taken in and votes when it has caught up: it %s.", id, state)
	}
}

// awaitVoter looks until a replica votes.
func (g *globals) awaitVoter(c *cobra.Command, client *adminapi.Client, id string, most time.Duration) (*adminapi.Cluster, error) {
	ctx, cancel := c.Context(), context.CancelFunc(func() {})
	if most > 0 {
		ctx, cancel = context.WithTimeout(ctx, most)
	}
	defer cancel()
	p := g.progress(c, "taken in; waiting until replica "+id+" votes")
	defer p.done()
	for {
		x, err := client.Cluster(ctx)
		state, silent := "no edge answers", false
		if err == nil {
			var votes bool
			if votes, state = progressOf(x, id); votes {
				return x, nil
			}
			silent = silentMember(x, id)
		} else if ctx.Err() == nil {
			return nil, fmt.Errorf("wait for replica %s: %w", id, err)
		}
		p.say("replica %s %s", id, state)
		select {
		case <-time.After(memberPoll):
		case <-ctx.Done():
			cure := "it stays a member and gets its vote when it has caught up; see its log, and 'iopctl cluster members -o wide'"
			if silent {
				cure = "start edged there, or see its log if it runs: it stays a member and gets its vote when it has caught up; if it was a mistake: iopctl cluster remove " + shQuote(id)
			}
			return nil, &faultError{code: ExitFailure, err: fmt.Errorf("replica %s does not vote yet: it %s", id, state), cure: cure}
		}
	}
}

// silentMember tells whether a member does not answer.
func silentMember(x *adminapi.Cluster, id string) bool {
	return slices.ContainsFunc(x.Members, func(m adminapi.ClusterMember) bool { return m.ID == id && m.Role == "" })
}

func progressOf(x *adminapi.Cluster, id string) (votes bool, state string) {
	for i := range x.Members {
		m := &x.Members[i]
		switch {
		case m.ID != id:
			continue
		case m.Voter && m.Role != "":
			return true, "votes"
		case m.Role == "":
			return false, "does not answer yet (" + m.Error + ")"
		}
		return false, fmt.Sprintf("is %s, at index %s, %s behind", m.Role, numberOr(m.AppliedIndex), numberOr(m.Lag))
	}
	return false, "is no member"
}

// awaitListed looks until a replica that was taken in or out is in the list, or in it no more: the edge that answers may
// hear of it later than the leader. It gives up soon, with what it has.
func awaitListed(ctx context.Context, client *adminapi.Client, x *adminapi.Cluster, id string, there bool) *adminapi.Cluster {
	for range 5 {
		if slices.ContainsFunc(x.Members, func(m adminapi.ClusterMember) bool { return m.ID == id }) == there {
			return x
		}
		select {
		case <-time.After(memberPoll):
		case <-ctx.Done():
			return x
		}
		if next, err := client.Cluster(ctx); err == nil {
			x = next
		}
	}
	return x
}

func newClusterRemove(g *globals) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "remove ID",
		Short: "Take a replica out, without a stop",
		Long: `Take a replica out; also the leader, which hands leadership over first. Its process ends by itself when it hears of it, after
the requests that run there; stop it before to have them end first. It can't come back with its data directory.

Refused: the last replica that votes; and one without which the rest has no majority, unless --force.`,
		Args:              exactly(1),
		ValidArgsFunction: g.completing(memberIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.changing(c)
			if err != nil {
				return err
			}
			defer client.Close()
			p := g.progress(c, "taking replica "+args[0]+" out")
			defer p.done()
			x, err := client.RemoveMember(c.Context(), args[0], force)
			if err != nil {
				return nearby(c, client, args[0], memberIDs, leaderless(err))
			}
			x = awaitListed(c.Context(), client, x, args[0], false)
			p.done()
			return g.print(c, x, func(p *page) { showMembers(p, x) })
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also if what remains has no majority and so stops")
	return c
}

func newClusterTransfer(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "transfer [ID]",
		Short: "Hand leadership to a replica, or to whichever is furthest",
		Args:  asUsage(cobra.MaximumNArgs(1)), ValidArgsFunction: g.completing(memberIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.changing(c)
			if err != nil {
				return err
			}
			defer client.Close()
			t := adminapi.TransferRequest{}
			if len(args) > 0 {
				t.To = args[0]
			}
			p := g.progress(c, "handing leadership over")
			x, err := client.Transfer(c.Context(), t)
			p.done()
			if err != nil {
				return nearby(c, client, t.To, memberIDs, leaderless(err))
			}
			return g.print(c, x, func(p *page) { p.line("Leader: %s.", orDash(x.Leader)) })
		},
	}
}

func newClusterReplace(g *globals) *cobra.Command {
	var o memberWait
	c := &cobra.Command{
		Use:   "replace OLD NEW ADDRESS",
		Short: "Put a new replica in the place of one that lost its disk",
		Long: `Take in replica NEW, wait until it votes, and take OLD out. A replica that lost its disk must not come back under its old id: it does
not know any more for whom it voted. Start NEW as for 'iopctl cluster add'. If ADDRESS is that of OLD, OLD is taken out first.

If it is interrupted, run it again.`,
		Example: "  iopctl cluster replace edge-3 edge-4 gw3:7400",
		Args:    exactly(3), ValidArgsFunction: g.completing(memberIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.adding(c, args[2], o.max)
			if err != nil {
				return err
			}
			defer client.Close()
			x, err := g.replace(c, client, args[0], adminapi.MemberRequest{ID: args[1], Address: args[2]}, o.max)
			if err != nil {
				return leaderless(err)
			}
			return g.print(c, x, func(p *page) { showMembers(p, x) })
		},
	}
	o.register(c)
	return c
}

func (g *globals) replace(c *cobra.Command, client *adminapi.Client, old string, next adminapi.MemberRequest, most time.Duration) (*adminapi.Cluster, error) {
	x, err := client.Cluster(c.Context())
	if err != nil {
		return nil, err
	}
	there, taken := false, false
	for _, m := range x.Members {
		there = there || m.ID == old
		taken = taken || m.ID == next.ID
		if m.ID == old && m.Address == next.Address {
			if _, err := client.RemoveMember(c.Context(), old, false); err != nil {
				return nil, err
			}
			there, taken = false, true
		}
	}
	if !there && !taken {
		return nil, &faultError{
			code: ExitFailure, err: errors.New("there is no replica " + old + " in the cluster"),
			cure: meant(old, idsOf(x.Members, func(m *adminapi.ClusterMember) id { return id{name: m.ID} })) + "'iopctl cluster members' lists those there are; to take one in without replacing: iopctl cluster add",
		}
	}
	if _, err := client.AddMember(c.Context(), next); err != nil {
		return nil, err
	}
	if x, err = g.awaitVoter(c, client, next.ID, most); err != nil || !there {
		return x, err
	}
	return client.RemoveMember(c.Context(), old, false)
}
