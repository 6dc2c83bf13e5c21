package adminapi

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// UsageReport answers GET /usage.
type UsageReport struct {
	By   []string   `json:"by"`   // by what the rows are summed up
	From string     `json:"from"` // first day; "" = from the beginning
	To   string     `json:"to"`   // last day; "" = to the present
	Rows []UsageRow `json:"rows"` // in order of what they are summed up by
}

// UsageRow is what runs used. Of day, principal, token, model and provider it has those that the report is by.
type UsageRow struct {
	Day        string `json:"day,omitempty"` // UTC, 2006-01-02; "earlier" for days that are no longer kept apart
	Principal  string `json:"principal,omitempty"`
	Token      string `json:"token,omitempty"` // token_ref
	Model      string `json:"model,omitempty"`
	Provider   string `json:"provider,omitempty"`
	Requests   uint64 `json:"requests"`          // runs that came to an end
	Aborted    uint64 `json:"aborted"`           // of them, those that did not end as they should
	Untold     uint64 `json:"untold"`            // of them, those whose tokens nobody reported
	Prompt     uint64 `json:"prompt_tokens"`     // cached ones too
	Completion uint64 `json:"completion_tokens"` // those of reasoning too
	Cached     uint64 `json:"cached_tokens"`
	Reasoning  uint64 `json:"reasoning_tokens"`
}

// UsageQuery says which days, and by what they are summed up.
type UsageQuery struct {
	By       []string // of UsageKeys; empty = all of them
	From, To string   // days as 2006-01-02, both included; "" = no bound
}

// Earlier is the day of what is no longer kept by day.
const Earlier = "earlier"

// UsageKeys are what usage can be summed up by.
func UsageKeys() []string { return []string{"day", "principal", "token", "model", "provider"} }

// Check tells what is wrong with the query, nil if nothing is.
func (q *UsageQuery) Check() error {
	for _, k := range q.By {
		if !slices.Contains(UsageKeys(), k) {
			return fmt.Errorf("usage is not counted by %q: it is by %s", k, strings.Join(UsageKeys(), ", "))
		}
	}
	for _, day := range []string{q.From, q.To} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return fmt.Errorf("%q is not a day: write it as 2026-01-31", day)
		}
	}
	if q.From != "" && q.To != "" && q.To < q.From {
		return fmt.Errorf("the last day, %s, is before the first, %s", q.To, q.From)
	}
	return nil
}

// Sum gives the report that the query asks for, from the rows of the ledger.
func (q *UsageQuery) Sum(ledger []UsageRow) *UsageReport {
	by := q.By
	if len(by) == 0 {
		by = UsageKeys()
	}
	out := &UsageReport{By: by, From: q.From, To: q.To, Rows: []UsageRow{}}
	sums := map[[5]string]int{}
	for i := range ledger {
		row := &ledger[i]
		if row.Day == Earlier && q.From != "" || row.Day < q.From || q.To != "" && row.Day > q.To && row.Day != Earlier {
			continue
		}
		key := row.key(by)
		at, ok := sums[key]
		if !ok {
			at = len(out.Rows)
			sums[key] = at
			out.Rows = append(out.Rows, UsageRow{Day: key[0], Principal: key[1], Token: key[2], Model: key[3], Provider: key[4]})
		}
		out.Rows[at].add(row)
	}
	slices.SortFunc(out.Rows, func(a, b UsageRow) int {
		return cmp.Or(
			compareDays(a.Day, b.Day), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Token, b.Token),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider),
		)
	})
	return out
}

// compareDays has what is no longer kept by day before all days.
func compareDays(a, b string) int {
	if (a == Earlier) != (b == Earlier) {
		if a == Earlier {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

func (r *UsageRow) key(by []string) (key [5]string) {
	all := [5]string{r.Day, r.Principal, r.Token, r.Model, r.Provider}
	for i, name := range UsageKeys() {
		if slices.Contains(by, name) {
			key[i] = all[i]
		}
	}
	return key
}

func (r *UsageRow) add(o *UsageRow) {
	r.Requests += o.Requests
	r.Aborted += o.Aborted
	r.Untold += o.Untold
	r.Prompt += o.Prompt
	r.Completion += o.Completion
	r.Cached += o.Cached
	r.Reasoning += o.Reasoning
}

// DayOf names a UTC day that is counted from 1970-01-01.
func DayOf(day int64) string { return time.Unix(day*24*3600, 0).UTC().Format(time.DateOnly) }

// Usage asks what was used.
func (c *Client) Usage(ctx context.Context, q UsageQuery, at Moment) (*UsageReport, error) {
	v := url.Values{}
	if len(q.By) > 0 {
		v.Set("by", strings.Join(q.By, ","))
	}
	for name, value := range map[string]string{"from": q.From, "to": q.To} {
		if value != "" {
			v.Set(name, value)
		}
	}
	path := "/usage" + at.query()
	if len(v) > 0 {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		path += sep + v.Encode()
	}
	return get[UsageReport](ctx, c, path)
}
