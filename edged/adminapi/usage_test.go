package adminapi_test

import (
	"fmt"
	"testing"

	"iop/edged/adminapi"
)

// TestUsageIsSummedUp: by the keys that are asked for, of the days that are asked for; what is no longer kept by day counts
// only where no first day is named.
func TestUsageIsSummedUp(t *testing.T) {
	ledger := []adminapi.UsageRow{
		{Day: adminapi.Earlier, Requests: 100},
		{Day: "2026-01-30", Principal: "b", Token: "t1", Model: "m", Provider: "p1", Requests: 1, Aborted: 1, Untold: 1},
		{Day: "2026-01-30", Principal: "a", Token: "t1", Model: "m", Provider: "p1", Requests: 2, Prompt: 5, Completion: 7, Cached: 3, Reasoning: 2},
		{Day: "2026-01-31", Principal: "a", Token: "t2", Model: "o", Provider: "p2", Requests: 4, Prompt: 1, Completion: 1},
	}
	for _, c := range []struct {
		q    adminapi.UsageQuery
		want string
	}{
		{adminapi.UsageQuery{By: []string{"day"}}, "[{earlier     100 0 0 0 0 0 0} {2026-01-30     3 1 1 5 7 3 2} {2026-01-31     4 0 0 1 1 0 0}]"},
		{adminapi.UsageQuery{By: []string{"principal"}, From: "2026-01-30"}, "[{ a    6 0 0 6 8 3 2} { b    1 1 1 0 0 0 0}]"},
		{adminapi.UsageQuery{By: []string{"model", "day"}, From: "2026-01-30", To: "2026-01-30"}, "[{2026-01-30   m  3 1 1 5 7 3 2}]"},
		{adminapi.UsageQuery{By: []string{"provider"}, To: "2026-01-29"}, "[{     100 0 0 0 0 0 0}]"},
		{adminapi.UsageQuery{From: "2026-02-01"}, "[]"},
	} {
		if err := c.q.Check(); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(c.q.Sum(ledger).Rows); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.q, got, c.want)
		}
	}
	for _, q := range []adminapi.UsageQuery{{By: []string{"user"}}, {From: "yesterday"}, {To: "2026-13-01"}, {From: "2026-01-31", To: "2026-01-30"}} {
		if q.Check() == nil {
			t.Errorf("%+v is taken", q)
		}
	}
}
