package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newCluster(g *globals, version string) *cobra.Command {
	c := newGroup("cluster", "See and change the replicas: grow, shrink, compare, back up, restore")
	c.Long = `See and change the replicas of the cluster. Any edge can be asked: what only the leader can do is handed to it.

Commands that change something exit with 5 if there was no leader to do it.`
	c.Example = `  iopctl cluster members
  iopctl cluster add edge-2 gw2:7400 --wait
  iopctl cluster remove edge-3
  iopctl cluster replace edge-3 edge-4 gw4:7400
  iopctl cluster verify
  iopctl cluster backup -o iop.backup
  iopctl cluster restore iop.backup --data-dir ./data --replica edge-1`
	c.AddCommand(
		newClusterMembers(g), newClusterAdd(g), newClusterRemove(g), newClusterReplace(g), newClusterTransfer(g), newClusterVerify(g),
		newClusterBackup(g, version), newClusterRestore(g, version), newClusterRecover(g, version),
	)
	return c
}

// changeTimeout is how long a call may take that may need an election, unless --timeout says otherwise.
const changeTimeout = 20 * time.Second

// changing makes a client that waits for elections.
func (g *globals) changing(c *cobra.Command) (*adminapi.Client, error) {
	if !c.Flags().Changed("timeout") {
		g.timeout = changeTimeout
	}
	return g.client(c)
}

func newClusterMembers(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "members",
		Short: "List the replicas and how each stands",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			x, err := client.Cluster(c.Context())
			if err != nil {
				return err
			}
			return g.print(c, x, func(p *page) { showMembers(p, x) })
		},
	}
}

func showMembers(p *page, x *adminapi.Cluster) {
	p.table(memberTable(x.Members))
	if x.Leader == "" {
		p.line("")
		p.line("Edge %s knows of no leader: nothing is admitted there until there is one.", x.Edge)
	}
}

func memberTable(members []adminapi.ClusterMember) *table {
	t := &table{
		columns: []column{
			{name: "REPLICA"},
			{name: "ADDRESS"},
			{name: "VOTER"},
			{name: "ROLE"},
			{name: "APPLIED", right: true},
			{name: "LAG", right: true},
			{name: "VERSION"},
			{name: "LEVEL", right: true, wide: true},
			{name: "HEARD"},
			{name: "SESSION", right: true},
			{name: "ERROR", wide: true},
		},
		empty: "There are no members.",
	}
	for _, m := range members {
		level := ""
		if m.Level > 0 {
			level = strconv.FormatUint(uint64(m.Level), 10)
		}
		session := ""
		if m.Session > 0 {
			session = strconv.FormatUint(m.Session, 10)
		}
		t.rows = append(t.rows, cells(
			m.ID, m.Address, yesNo(m.Voter), roleOf(&m), numberOr(m.AppliedIndex), numberOr(m.Lag), m.Version, level, heard(m.ContactMS), session, m.Error,
		))
	}
	return t
}

func roleOf(m *adminapi.ClusterMember) cell {
	switch m.Role {
	case "":
		return cell{"no answer", paintBad}
	case "leader", "follower":
		return cell{m.Role, paintGood}
	}
	return cell{m.Role, paintBusy}
}

func numberOr(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n, 10)
}

func heard(ms *int64) string {
	switch {
	case ms == nil:
		return "never"
	case *ms < 1000:
		return "now"
	}
	return (time.Duration(*ms) * time.Millisecond).Round(time.Second).String() + " ago"
}

// glance is the members in one line.
func glance(x *adminapi.Cluster) string {
	parts := make([]string, 0, len(x.Members))
	for i := range x.Members {
		m := &x.Members[i]
		text := m.ID + " " + roleOf(m).text
		if m.Lag != nil && *m.Lag > 0 {
			text += fmt.Sprintf(" (%d behind)", *m.Lag)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func newClusterVerify(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Compare the states of all replicas at one index",
		Long: `Compare the states of all replicas after one entry of the log, which is written for it: each takes the digest of its living state
right there, so nothing stops. Replicas that don't answer are named.

It exits with 0 if all that answered have the same state, with 1 if not, with 5 without a leader.`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.changing(c)
			if err != nil {
				return err
			}
			defer client.Close()
			p := g.progress(c, "waiting for the digests of all replicas")
			v, err := client.Verify(c.Context())
			p.done()
			if err != nil {
				return leaderless(err)
			}
			if err := g.print(c, v, func(p *page) { showVerification(p, v) }); err != nil {
				return err
			}
			if v.Same {
				return nil
			}
			return &faultError{
				code: ExitFailure, err: errors.New("the replicas' states differ"),
				cure: "keep a copy of each data directory and report it; then replace the replica that differs from the majority: iopctl cluster replace",
			}
		},
	}
}

func showVerification(p *page, v *adminapi.Verification) {
	count, answered := map[string]int{}, 0
	for _, r := range v.Replicas {
		if r.Digest != "" {
			count[r.Digest]++
			answered++
		}
	}
	t := &table{columns: []column{{name: "REPLICA"}, {name: "DIGEST"}, {name: "STATE"}}}
	for _, r := range v.Replicas {
		state := cell{"same", paintGood}
		switch {
		case r.Digest == "":
			state = cell{"no answer: " + r.Error, paintBusy}
		case !v.Same && 2*count[r.Digest] <= answered:
			state = cell{"differs", paintBad}
		}
		digest := r.Digest
		if !p.wide {
			digest = digest[:min(len(digest), 16)]
		}
		t.rows = append(t.rows, cells(r.ID, digest, state))
	}
	p.table(t)
	p.line("")
	switch {
	case !v.Same:
		p.line("The states differ at index %d.", v.Index)
	case len(v.Replicas) == 1:
		p.line("There is one replica, and none to compare it with: this is its state at index %d.", v.Index)
	case answered < len(v.Replicas):
		p.line("%d of %d replicas answered; they have the same state at index %d.", answered, len(v.Replicas), v.Index)
	default:
		p.line("All %d replicas have the same state at index %d.", answered, v.Index)
	}
}
