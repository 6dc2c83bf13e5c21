package cli

import (
	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

func newQueueCancel(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel REQUEST",
		Short: "Take a waiting request out of the queue",
		Long: `Take a waiting request out of the queue, whichever replica's client it is from. Its client gets 503 with the code canceled_by_operator.
A request that runs is left alone. Ids are those of 'iopctl queue list'.`,
		Args:              exactly(1),
		ValidArgsFunction: g.completing(waiterIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			done, err := client.CancelWaiter(c.Context(), args[0])
			if err != nil {
				return nearby(c, client, args[0], waiterIDs, leaderless(err))
			}
			return g.print(c, done, func(p *page) { p.line("%s", canceledText(done)) })
		},
	}
}

func canceledText(w *adminapi.CanceledWaiter) string {
	return "request " + w.Request + " has left the queue; its client is told canceled_by_operator."
}
