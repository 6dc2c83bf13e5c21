package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// topFrame is one picture as JSON: a frame of the live feed whose lists are never null.
type topFrame struct {
	adminapi.Frame
	Providers []adminapi.Provider   `json:"providers"`
	Nodes     []adminapi.Node       `json:"nodes"`
	Leases    []adminapi.LiveLease  `json:"leases"`
	Waiters   []adminapi.LiveWaiter `json:"waiters"`
	Members   []adminapi.LiveMember `json:"members"`
	Pulse     []adminapi.Sample     `json:"pulse"`
}

// errOnce ends a feed after its first frame.
var errOnce = errors.New("one frame was asked for")

func (g *globals) topOnce(c *cobra.Command, client *adminapi.Client, every time.Duration) error {
	var picture adminapi.Picture
	err := client.Live(c.Context(), every, func(f *adminapi.Frame) error {
		if err := picture.Apply(f); err != nil {
			return err
		}
		return errOnce
	})
	if !errors.Is(err, errOnce) {
		return err
	}
	f := &topFrame{
		Frame: picture.Head, Providers: some(picture.Providers()), Nodes: some(picture.Nodes()), Leases: some(picture.Leases()),
		Waiters: some(picture.Waiters()), Members: some(picture.Members), Pulse: some(slices.Concat(picture.Minutes(), picture.Seconds())),
	}
	return g.print(c, f, func(p *page) { showFrame(p, f) })
}

func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func showFrame(p *page, f *topFrame) {
	leader := "none known: nothing is admitted until there is one"
	if f.Leader != "" {
		leader = fmt.Sprintf("%s, term %d", f.Leader, f.Term)
	}
	p.fields(
		[2]string{"Edge", fmt.Sprintf("%s (%s)", f.Edge, f.Role)},
		[2]string{"Leader", leader},
		[2]string{"Applied", fmt.Sprintf("index %d, configuration revision %d", f.AppliedIndex, f.Revision)},
		[2]string{"Queue", fmt.Sprintf("%d of %d pending, %d long", f.Queue.Pending, f.Queue.Max, f.Queue.LongPending)},
	)
	p.line("")
	p.table(providerTable(f.Providers))
	p.line("")
	p.table(liveWaiterTable(f))
	p.line("")
	p.table(liveLeaseTable(f))
}

func liveWaiterTable(f *topFrame) *table {
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
			{name: "PRINCIPAL", wide: true},
			{name: "WAITS FOR"},
		},
		empty: "The queue is empty.",
	}
	for i, w := range f.Waiters {
		ends := "never"
		if w.DeadlineAtMS != 0 {
			ends = span(max(0, w.DeadlineAtMS-f.AtMS))
		}
		t.rows = append(t.rows, cells(
			i+1, w.Request, w.Model, w.Class, w.State, span(max(0, f.AtMS-w.EnqueuedAtMS)), ends, w.Edge, w.Principal, w.WaitsFor,
		))
	}
	return t
}

func liveLeaseTable(f *topFrame) *table {
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
			{name: "AGE", right: true},
		},
		empty: "No request holds a lease.",
	}
	for _, l := range f.Leases {
		t.rows = append(t.rows, cells(
			l.ID, l.Request, l.Model, l.Provider, l.Node, l.Class, cell{l.State, leasePaint(l.State)}, l.Edge, span(max(0, f.AtMS-l.GrantedAtMS)),
		))
	}
	return t
}
