package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/fsm"
	"iop/storage"
)

// logOptions choose commands of the log.
type logOptions struct {
	dir                     string
	from, to, lease         uint64
	since, until            string
	request, node, provider string
	kind                    string
	outcomes                bool
	limit                   int
}

// logLine is a line of debug log. Outcome and effects are there only with --outcomes.
type logLine struct {
	Index     uint64         `json:"index"`
	Term      uint64         `json:"term"`
	Time      time.Time      `json:"time"`
	ClusterMS int64          `json:"cluster_ms"`
	Session   uint64         `json:"session"`
	Seq       uint64         `json:"seq"`
	Place     int            `json:"place"`
	Kind      string         `json:"kind"`
	Command   map[string]any `json:"command"`
	Outcome   string         `json:"outcome,omitempty"`
	Effects   []string       `json:"effects,omitempty"`
	Text      string         `json:"text"`
}

func newDebugLog(g *globals) *cobra.Command {
	var o logOptions
	c := &cobra.Command{
		Use:   "log --data-dir DIR",
		Short: "Print the commands of the log as JSON lines",
		Long: `Prints one JSON object per command, in the order of the log. With --outcomes the log is replayed, so that each line has its
outcome and what else it brought about, and the filters look at those too; that reaches back to the oldest snapshot only.`,
		Example: `  iopctl debug log --data-dir ./data/edge-1 --request req-5b1f --outcomes
  iopctl debug log --data-dir ./data/edge-1 --kind link_lost --since 2h`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := o.filter()
			if err != nil {
				return usage(c, err)
			}
			return history(c, o.dir, func(p *storage.Past) error { return o.run(c, p, f) })
		},
	}
	o.register(c)
	// The names are those of flags just made.
	for name, list := range map[string]lister{"request": requestIDs, "lease": leaseIDs, "node": nodeIDs, "provider": providerIDs} {
		_ = c.RegisterFlagCompletionFunc(name, g.completingFlag(list))
	}
	return c
}

func (o *logOptions) register(c *cobra.Command) {
	directoryOption(c, &o.dir)
	f := c.Flags()
	f.Uint64Var(&o.from, "from", 0, "from this `index` on")
	f.Uint64Var(&o.to, "to", 0, "up to this `index`")
	f.StringVar(&o.since, "since", "", "from this `time` on, as 2026-01-31T15:04:05Z, or 10m (ago)")
	f.StringVar(&o.until, "until", "", "up to this `time`")
	f.StringVar(&o.request, "request", "", "of this request `id`")
	f.Uint64Var(&o.lease, "lease", 0, "of this lease `id`")
	f.StringVar(&o.node, "node", "", "of this node `id`")
	f.StringVar(&o.provider, "provider", "", "of this provider `id`")
	f.StringVar(&o.kind, "kind", "", "of this `kind`: "+strings.Join(storage.Kinds(), ", "))
	f.BoolVar(&o.outcomes, "outcomes", false, "replay, and show what came of each command")
	f.IntVar(&o.limit, "limit", 0, "stop after `n` lines; 0 = never")
	// The name is that of the flag just made.
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(storage.Kinds(), cobra.ShellCompDirectiveNoFileComp))
}

func (o *logOptions) filter() (storage.Filter, error) {
	f := storage.Filter{
		From: o.from, To: o.to, Request: fsm.RequestID(o.request), Lease: fsm.LeaseID(o.lease), Node: fsm.NodeID(o.node),
		Provider: fsm.ProviderID(o.provider), Kind: o.kind, Outcomes: o.outcomes,
	}
	if o.kind != "" && !slices.Contains(storage.Kinds(), o.kind) {
		return f, fmt.Errorf("unknown kind %q: it is one of %s", o.kind, strings.Join(storage.Kinds(), ", "))
	}
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{{"since", o.since, &f.Since}, {"until", o.until, &f.Until}} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.to, err = parseTime(t.text, time.Now()); err != nil {
			return f, fmt.Errorf("--%s: %w", t.name, err)
		}
	}
	return f, nil
}

var errEnough = errors.New("enough lines")

func (o *logOptions) run(c *cobra.Command, p *storage.Past, f storage.Filter) error {
	w := bufio.NewWriter(c.OutOrStdout())
	var line bytes.Buffer
	lines := json.NewEncoder(&line)
	lines.SetEscapeHTML(false)
	n := 0
	err := p.Log(c.Context(), f, func(r *storage.Record) error {
		line.Reset()
		if err := lines.Encode(recordLine(r)); err != nil {
			return fmt.Errorf("encode output: %w", err)
		}
		if _, err := w.Write(harmless(line.Bytes())); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		if n++; n == o.limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return errors.Join(err, w.Flush())
}

func recordLine(r *storage.Record) logLine {
	return logLine{
		Index: r.Index, Term: r.Term, Time: r.Time, ClusterMS: r.Cluster.Milliseconds(), Session: r.Session, Seq: r.Seq, Place: r.Place,
		Kind: r.Kind, Command: r.Command, Outcome: r.Outcome, Effects: r.Effects, Text: r.Text,
	}
}
