package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
	"iop/fsm"
)

func newUsage(g *globals) *cobra.Command {
	var o pastOptions
	var q adminapi.UsageQuery
	var day string
	c := &cobra.Command{
		Use:   "usage",
		Short: "Tell who used how many tokens, of which model, at which provider, on which day",
		Long: `Of every run that ended the tokens are counted that its backend reported, once, in the cluster's log. Days are UTC. A run
counts on the day on which it ended. UNTOLD runs are those whose backend reported nothing, or whose edge was lost before it
could pass it on: their tokens are in no sum.`,
		Example: `  iopctl usage                                   # all there is
  iopctl usage --by principal --day yesterday
  iopctl usage --by day,principal --from 2026-01-01 --to 2026-01-31
  iopctl usage --by principal,model -o csv > january.csv
  iopctl usage --data-dir ./data/edge-1          # of an edge that is down`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if day != "" && q.From+q.To != "" {
				return usage(c, errors.New("--day is one day alone: leave --from and --to out"))
			}
			if day != "" {
				q.From, q.To = day, day
			}
			q.From, q.To = dayOf(q.From, time.Now()), dayOf(q.To, time.Now())
			if err := q.Check(); err != nil {
				return usage(c, err)
			}
			r, err := look(g, c, &o, func(client *adminapi.Client, at adminapi.Moment) (*adminapi.UsageReport, error) {
				return client.Usage(c.Context(), q, at)
			}, func(x *offline) (*adminapi.UsageReport, error) { return q.Sum(usageOf(x.machine.Usage())), nil })
			if err != nil {
				return err
			}
			t := usageTable(r)
			if g.output == formatCSV {
				return printCSV(c, t)
			}
			return g.print(c, r, func(p *page) { p.table(t) })
		},
	}
	o.register(c)
	c.Flags().StringSliceVar(&q.By, "by", nil, "sum up by `keys`: day, principal, token, model, provider (default: by all)")
	c.Flags().StringVar(&day, "day", "", "this `day` alone, as 2026-01-31, today or yesterday (UTC)")
	c.Flags().StringVar(&q.From, "from", "", "the first `day`, in the same words")
	c.Flags().StringVar(&q.To, "to", "", "the last `day`")
	// The name is that of the flag just made.
	_ = c.RegisterFlagCompletionFunc("by", completeKeys(adminapi.UsageKeys()...))
	c.Annotations = map[string]string{annotationCSV: ""}
	return c
}

// dayOf puts a date in the place of a day that is named by its distance from now.
func dayOf(day string, now time.Time) string {
	switch now = now.UTC(); day {
	case "today":
		return now.Format(time.DateOnly)
	case "yesterday":
		return now.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	return day
}

// formatCSV is an output format of the commands that are annotated with annotationCSV.
const (
	formatCSV     = "csv"
	annotationCSV = "csv"
)

func usageOf(rows []fsm.UsageRow) []adminapi.UsageRow {
	out := make([]adminapi.UsageRow, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		day := adminapi.DayOf(r.Day)
		if r.UsageKey == (fsm.UsageKey{}) {
			day = adminapi.Earlier
		}
		out = append(out, adminapi.UsageRow{
			Day: day, Principal: string(r.Principal), Token: r.Token, Model: string(r.Model), Provider: string(r.Provider),
			Requests: r.Requests, Aborted: r.Aborted, Untold: r.Untold,
			Prompt: r.Prompt, Completion: r.Completion, Cached: r.Cached, Reasoning: r.Reasoning,
		})
	}
	return out
}

func usageTable(r *adminapi.UsageReport) *table {
	t := &table{empty: "Nothing was used."}
	names := map[string]string{"day": "DAY", "principal": "PRINCIPAL", "token": "TOKEN", "model": "MODEL", "provider": "PROVIDER"}
	for _, key := range adminapi.UsageKeys() {
		if slices.Contains(r.By, key) {
			t.columns = append(t.columns, column{name: names[key]})
		}
	}
	for _, name := range []string{"REQUESTS", "ABORTED", "UNTOLD", "PROMPT", "COMPLETION", "CACHED", "REASONING"} {
		t.columns = append(t.columns, column{name: name, right: true})
	}
	for i := range r.Rows {
		u := &r.Rows[i]
		var row []cell
		for k, value := range []string{u.Day, u.Principal, u.Token, u.Model, u.Provider} {
			if slices.Contains(r.By, adminapi.UsageKeys()[k]) {
				row = append(row, cell{text: value})
			}
		}
		for _, n := range []uint64{u.Requests, u.Aborted, u.Untold, u.Prompt, u.Completion, u.Cached, u.Reasoning} {
			row = append(row, cell{text: strconv.FormatUint(n, 10)})
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// printCSV writes a table as RFC 4180 has it, with a line of names. A text that a spreadsheet would take for a formula gets
// a quote before it.
func printCSV(c *cobra.Command, t *table) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	line := make([]string, len(t.columns))
	for i, col := range t.columns {
		line[i] = col.name
	}
	_ = w.Write(line) // into memory it never fails
	for _, row := range t.rows {
		for i := range row {
			line[i] = row[i].text
			if text := line[i]; text != "" && bytes.IndexByte([]byte("=+-@\t\r"), text[0]) >= 0 {
				line[i] = "'" + text
			}
		}
		_ = w.Write(line)
	}
	w.Flush()
	if _, err := c.OutOrStdout().Write(b.Bytes()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
