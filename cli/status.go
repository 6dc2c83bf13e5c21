package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newStatus(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the whole at a glance: leader, queue, providers, links, and what to look at",
		Long: `Show the whole at a glance, of the first edge that answers. Lines with ! are what to look at: no leader, replicas that are silent, why
requests wait, nodes that are gone, providers that are degraded or drained; each names the command that tells more.`,
		Example: `  iopctl status
  iopctl status --edge gw1:9080 --edge gw2:9080      # the first that answers
  watch -n 2 iopctl status                           # or, live: iopctl top`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			s, x, err := g.status(c)
			if err != nil {
				return err
			}
			defer x.answered.Close()
			return g.print(c, s, func(p *page) {
				x.ask(c.Context(), s)
				showStatus(p, s, x)
			})
		},
	}
}

// status asks all edges that are named, at the same time: one that hangs costs nothing if another answers. The first of them in
// the order in which they are named is shown, and of the others who did not answer.
func (g *globals) status(c *cobra.Command) (*adminapi.Status, *extras, error) {
	addresses := g.addresses()
	answers := make([]edgeAnswer, len(addresses))
	for i, address := range addresses {
		client, err := g.clientOf(c, address)
		if err != nil {
			return nil, nil, err
		}
		answers[i] = edgeAnswer{address: address, client: client, done: make(chan struct{})}
	}
	ctx, stop := context.WithCancel(c.Context())
	late, begin := make(chan struct{}), sync.Once{}
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() {
			if answers[i].ask(ctx) {
				begin.Do(func() { time.AfterFunc(statusPatience, func() { close(late) }) })
			}
		})
	}
	defer asking.Wait()
	defer stop()
	return pick(answers, late)
}

// edgeAnswer is what one edge says of its status.
type edgeAnswer struct {
	address string
	client  *adminapi.Client
	done    chan struct{} // closed when the rest is there
	status  *adminapi.Status
	err     error
}

func (a *edgeAnswer) ask(ctx context.Context) bool {
	defer close(a.done)
	a.status, a.err = a.client.Status(ctx)
	return a.err == nil
}

// statusPatience is how long an edge that is named earlier is waited for, once another one has answered.
const statusPatience = time.Second

// pick gives the answer of the first edge, or of the first after it that has one.
func pick(answers []edgeAnswer, late <-chan struct{}) (*adminapi.Status, *extras, error) {
	var failed adminapi.UnreachableError
	var refused error
	x := &extras{}
	for i := range answers {
		a := &answers[i]
		if !a.await(late) {
			failed.Attempts = append(failed.Attempts, adminapi.Attempt{Address: a.address, Err: errSlow})
			continue
		}
		var none *adminapi.UnreachableError
		switch {
		case a.err == nil:
			for _, f := range failed.Attempts {
				x.silent = append(x.silent, fmt.Sprintf("%s: %v", f.Address, f.Err))
			}
			x.answered = a.client
			return a.status, x, nil
		case errors.As(a.err, &none):
			failed.Attempts = append(failed.Attempts, none.Attempts...)
		default:
			refused = cmp.Or(refused, a.err)
			failed.Attempts = append(failed.Attempts, adminapi.Attempt{Address: a.address, Err: a.err})
		}
	}
	if refused != nil {
		return nil, nil, refused
	}
	return nil, nil, &failed
}

var errSlow = errors.New("no answer yet, when another edge had answered")

// await waits for the answer, until it is too late.
func (a *edgeAnswer) await(late <-chan struct{}) bool {
	select {
	case <-a.done:
		return true
	case <-late:
	}
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// extras are what the status for people has besides: members, and why what waits does. Without them it is shown all the same.
type extras struct {
	answered *adminapi.Client
	silent   []string // edges that were named before it and did not answer, and why
	members  *adminapi.Cluster
	queue    *adminapi.WaiterList
	drained  []string // nodes that are drained
}

func (x *extras) ask(ctx context.Context, s *adminapi.Status) {
	x.members, _ = x.answered.Cluster(ctx) // an older edge does not tell
	if s.Queue.Pending > 0 {
		x.queue, _ = x.answered.Queue(ctx, adminapi.Moment{})
	}
	if slices.ContainsFunc(s.Providers, func(v adminapi.Provider) bool { return v.Draining }) {
		x.drained = drainedNodes(ctx, x.answered)
	}
}

func showStatus(p *page, s *adminapi.Status, x *extras) {
	leader := fmt.Sprintf("%s, term %d", orDash(s.Leader), s.Term)
	if s.Leader == "" {
		leader = "none known: nothing is admitted until there is one"
	}
	fields := [][2]string{
		{"Edge", fmt.Sprintf("%s (%s)", s.Edge, s.Role)},
		{"Leader", leader},
		{"Applied", applied(s)},
		{"Queue", fmt.Sprintf("%d of %d pending, %d long", s.Queue.Pending, s.Queue.Max, s.Queue.LongPending)},
	}
	if x.members != nil && len(x.members.Members) > 1 {
		fields = slices.Insert(fields, 2, [2]string{"Members", glance(x.members)})
	}
	p.fields(fields...)
	showNotes(p, append(silentNotes(x.silent), notes(s, x)...))
	p.line("")
	p.table(providerTable(s.Providers))
	p.line("")
	p.table(linkTable(s.Links))
}

func applied(s *adminapi.Status) string {
	text := fmt.Sprintf("index %d, configuration revision %d", s.AppliedIndex, s.Revision)
	if s.Lag > 0 {
		text += fmt.Sprintf("; %d entries behind its log", s.Lag)
	}
	return text
}

func linkTable(links []adminapi.Link) *table {
	t := &table{
		columns: []column{{name: "NODE"}, {name: "EDGE"}, {name: "LINK"}, {name: "GEN", right: true}, {name: "LEASES", right: true}},
		empty:   "No node is linked.",
	}
	for _, l := range links {
		t.rows = append(t.rows, cells(l.Node, l.Edge, cell{l.State, linkPaint(l.State)}, l.Generation, l.Leases))
	}
	return t
}

func linkPaint(state string) paint {
	switch state {
	case "ready":
		return paintGood
	case "pending":
		return paintBusy
	}
	return paintBad
}
