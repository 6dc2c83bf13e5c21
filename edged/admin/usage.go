package admin

import (
	"net/http"
	"strings"

	"iop/edged/adminapi"
	"iop/fsm"
)

// usage answers GET /usage?by=day,principal&from=2026-01-01&to=2026-01-31: what was used, as the ledger has it.
func (a *api) usage(r *http.Request) (any, error) {
	v := r.URL.Query()
	q := adminapi.UsageQuery{From: v.Get("from"), To: v.Get("to")}
	if by := v.Get("by"); by != "" {
		q.By = strings.Split(by, ",")
	}
	if err := q.Check(); err != nil {
		return nil, &adminapi.Error{
			Code: "bad_request", Message: err.Error(), Cure: "ask for example for /usage?by=day,principal&from=2026-01-01",
			Status: http.StatusBadRequest,
		}
	}
	var rows []fsm.UsageRow
	if err := a.see(r, func(m *fsm.Machine, _ moment) { rows = m.Usage() }); err != nil {
		return nil, err
	}
	return q.Sum(showUsage(rows)), nil
}

func showUsage(rows []fsm.UsageRow) []adminapi.UsageRow {
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
