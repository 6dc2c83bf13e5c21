package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"iop/storage"
)

func newDebug(g *globals, version string) *cobra.Command {
	c := newGroup("debug", "Pack an archive for support; look into a data directory: the log, its invariants, what changed")
	c.AddCommand(newDebugBundle(g, version), newDebugLog(g), newDebugStory(g), newDebugCheck(g), newDebugDiff(g))
	return c
}

// directoryOption is the directory that a debug command reads.
func directoryOption(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "data-dir", "", "data `directory` of a replica; of a running one, a verified copy is read. It is not changed")
	// The name is that of the flag just made.
	_ = c.MarkFlagDirname("data-dir")
	_ = c.MarkFlagRequired("data-dir")
}

// checkReport is what debug check found in order.
type checkReport struct {
	Directory string   `json:"directory"`
	Cluster   string   `json:"cluster"`
	Replica   string   `json:"replica"`
	LogFrom   uint64   `json:"log_from"`
	LogTo     uint64   `json:"log_to"`
	StateFrom uint64   `json:"state_from"` // the first index whose state can be told
	Entries   int      `json:"entries"`    // read
	Replayed  int      `json:"replayed"`
	Checked   int      `json:"checked"` // states whose invariants hold
	Snapshots int      `json:"snapshots"`
	Digest    string   `json:"digest"` // of the last state
	TookMS    int64    `json:"took_ms"`
	Steps     []string `json:"steps"`
}

func newDebugCheck(g *globals) *cobra.Command {
	var dir string
	var every int
	c := &cobra.Command{
		Use:   "check --data-dir DIR",
		Short: "Verify a data directory: pages, checksums, invariants, digests",
		Long: `Reads every entry with its checksum, replays the log from the oldest snapshot that it reaches back to, checks the invariants
after every command, and compares the replayed state with each snapshot on the way. It exits with 1 and says what is wrong
and where, if anything is.`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if every < 1 {
				return usage(c, fmt.Errorf("--every %d: it is 1 or more", every))
			}
			return history(c, dir, func(p *storage.Past) error {
				start, info := time.Now(), p.Info()
				r := &checkReport{
					Directory: dir, Cluster: info.Cluster, Replica: info.Replica, LogFrom: info.FirstIndex, LogTo: info.LastIndex, Steps: []string{},
				}
				a, err := p.Check(c.Context(), every, func(step string) { r.Steps = append(r.Steps, step) })
				if err != nil {
					return err
				}
				r.StateFrom, r.Entries, r.Replayed, r.Checked = a.From, a.Entries, a.Replayed, a.Checked
				r.Snapshots, r.Digest, r.TookMS = a.Snapshots, a.Digest, time.Since(start).Milliseconds()
				return g.print(c, r, func(p *page) { showCheck(p, r) })
			})
		},
	}
	directoryOption(c, &dir)
	c.Flags().IntVar(&every, "every", 1, "check the invariants after every `n`th command only")
	return c
}

func showCheck(p *page, r *checkReport) {
	for _, s := range r.Steps {
		p.line("%s", s)
	}
	p.fields(
		[2]string{"Directory", r.Directory},
		[2]string{"Replica", r.Replica + " of cluster " + r.Cluster},
		[2]string{"Log", fmt.Sprintf("index %d to %d, %d entries read and whole", r.LogFrom, r.LogTo, r.Entries)},
		[2]string{"States", fmt.Sprintf("can be told from index %d on; %d entries replayed, invariants hold in all %d states checked", r.StateFrom, r.Replayed, r.Checked)},
		[2]string{"Snapshots", fmt.Sprintf("%d compared, each is what the log leads to", r.Snapshots)},
		[2]string{"Digest", r.Digest},
		[2]string{"Took", span(r.TookMS)},
	)
}

// logDiff is the JSON of debug diff.
type logDiff struct {
	From    uint64   `json:"from"` // the states after these indexes are compared
	To      uint64   `json:"to"`
	Changes []string `json:"changes"` // for people
}

func newDebugDiff(g *globals) *cobra.Command {
	var dir string
	var from, to uint64
	c := &cobra.Command{
		Use:     "diff --data-dir DIR --from INDEX [--to INDEX]",
		Short:   "Say what changed between two indexes of the log",
		Example: `  iopctl debug diff --data-dir ./data/edge-1 --from 1200 --to 1300`,
		Args:    exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return history(c, dir, func(past *storage.Past) error {
				if to == 0 {
					to = past.End()
				}
				if from == 0 || from > to {
					return usage(c, fmt.Errorf("--from %d --to %d: from is 1 or more, and not behind to", from, to))
				}
				lines, err := past.Diff(c.Context(), from, to)
				if err != nil {
					return err
				}
				out := logDiff{from, to, append([]string{}, lines...)}
				return g.print(c, out, func(p *page) {
					if len(lines) == 0 {
						p.line("Nothing changed between index %d and %d.", from, to)
					}
					for _, l := range lines {
						p.line("%s", l)
					}
				})
			})
		},
	}
	directoryOption(c, &dir)
	c.Flags().Uint64Var(&from, "from", 0, "the state after this `index` …")
	c.Flags().Uint64Var(&to, "to", 0, "… and after this one; default: the last `index`")
	_ = c.MarkFlagRequired("from")
	return c
}
