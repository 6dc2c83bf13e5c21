package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"iop/fsm"
	"iop/storage"
)

func newDebugStory(g *globals) *cobra.Command {
	var dir, node, provider string
	c := &cobra.Command{
		Use:   "story --data-dir DIR --node NODE | --provider PROVIDER",
		Short: "Tell what happened to a node or a provider",
		Long: `Tells of links, health, draining, configurations, grants and returns of a node or a provider, as far as the log reaches back; the
last ten thousand lines. For a request or a lease see 'iopctl leases inspect' and 'iopctl requests explain'.`,
		Example: `  iopctl debug story --data-dir ./data/edge-1 --node gpu-node`,
		Args:    exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if (node == "") == (provider == "") {
				return usage(c, errors.New("give --node or --provider"))
			}
			return history(c, dir, func(past *storage.Past) error {
				s, err := past.Story(c.Context(), storage.Subject{Node: fsm.NodeID(node), Provider: fsm.ProviderID(provider)})
				if err != nil {
					return err
				}
				out := storyOf(s)
				return g.print(c, out, func(p *page) { showStory(p, out) })
			})
		},
	}
	directoryOption(c, &dir)
	c.Flags().StringVar(&node, "node", "", "node `id`")
	c.Flags().StringVar(&provider, "provider", "", "provider `id`")
	// The names are those of the flags just made.
	_ = c.RegisterFlagCompletionFunc("node", g.completingFlag(nodeIDs))
	_ = c.RegisterFlagCompletionFunc("provider", g.completingFlag(providerIDs))
	return c
}
