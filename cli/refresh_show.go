package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"iop/edged/adminapi"
)

// showRefresh shows a report: what came of it, then every change with its class, then whom it touches.
// given is the file that was sent, as it was named; "" = none was.
func showRefresh(p *page, r *adminapi.RefreshReport, given string) {
	showProblems(p, r, given)
	p.fields([2]string{"Result", refreshWords(r)}, [2]string{"Revision", fmt.Sprint(r.Revision)})
	if len(r.ChangedPaths) > 0 {
		p.line("")
		p.table(changeTable(r.ChangedPaths))
	}
	showTouched(p, r)
}

// showProblems shows what is wrong with a file, and what may be.
func showProblems(p *page, r *adminapi.RefreshReport, given string) {
	file := fileName(r, given)
	for _, w := range r.Warnings {
		p.line("%s: warning: %s: %s", place(file, w.Line), w.Path, w.Text)
	}
	for _, x := range r.Problems {
		at := x.Path
		if at != "" {
			at += ": "
		}
		p.line("%s: %s%s", place(file, x.Line), at, x.Cause)
		if x.Cure != "" {
			p.line("  cure: %s", x.Cure)
		}
	}
}

func fileName(r *adminapi.RefreshReport, given string) string {
	switch {
	case r.File != "":
		return r.File
	case given == "-":
		return "standard input"
	}
	return cmp.Or(given, "the configuration")
}

func refreshWords(r *adminapi.RefreshReport) string {
	switch r.Result {
	case adminapi.RefreshNoChange:
		if len(r.RestartRequiredPaths) > 0 {
			return "no_change: nothing of it can be applied without a restart"
		}
		return "no_change: the file says what is in effect"
	case adminapi.RefreshDryRun:
		return "dry_run: it would be applied"
	case adminapi.RefreshApplied:
		if len(r.RestartRequiredPaths) > 0 {
			return fmt.Sprintf("applied, but for %s", restarts(len(r.RestartRequiredPaths)))
		}
		return "applied"
	}
	return r.Result
}

func restarts(n int) string {
	if n == 1 {
		return "1 path that needs a restart"
	}
	return fmt.Sprintf("%d paths that need a restart", n)
}

func changeTable(changes []adminapi.ChangedPath) *table {
	t := &table{columns: []column{{name: "PATH"}, {name: "OLD"}, {name: "NEW"}, {name: "CLASS"}}}
	for _, c := range changes {
		class := cell{c.Class, paintGood}
		if c.Class != adminapi.ClassLive {
			class.paint = paintBad
		}
		t.rows = append(t.rows, cells(c.Path, valueText(c.Old), valueText(c.New), class))
	}
	return t
}

// valueMax is how many bytes of a value a table shows.
const valueMax = 60

func valueText(v json.RawMessage) string {
	s := string(v)
	if s == "" || s == "null" {
		return ""
	}
	if len(s) > valueMax {
		s = strings.ToValidUTF8(s[:valueMax-1], "") + "…"
	}
	return s
}

func showTouched(p *page, r *adminapi.RefreshReport) {
	if r.WaitersAffected > 0 {
		p.line("")
		t := &table{columns: []column{{name: "WAITER"}, {name: "MODEL"}, {name: "LOSES"}, {name: "GAINS"}}}
		for _, w := range r.Waiters {
			t.rows = append(t.rows, cells(w.Request, w.Model, strings.Join(w.Loses, ","), strings.Join(w.Gains, ",")))
		}
		p.table(t)
		if r.WaitersAffected == 1 {
			p.line("1 waiting request changes its candidates")
		} else {
			p.line("%d waiting requests change their candidates", r.WaitersAffected)
		}
	}
	if len(r.ProvidersOverCapacity) > 0 {
		p.line("")
		t := &table{columns: []column{{name: "OVER CAPACITY"}, {name: "IN FLIGHT", right: true}, {name: "LONG", right: true}}}
		for _, o := range r.ProvidersOverCapacity {
			t.rows = append(t.rows, cells(o.Provider, share(o.InFlight, o.Capacity), share(o.LongInFlight, o.LongCapacity)))
		}
		p.table(t)
	}
	if len(r.PushedNodes) > 0 || len(r.PendingNodes) > 0 {
		p.line("")
		pushed := "Pushed"
		if r.Result == adminapi.RefreshDryRun {
			pushed = "To push"
		}
		p.fields([2]string{pushed, strings.Join(r.PushedNodes, ", ")}, [2]string{"Pending", strings.Join(r.PendingNodes, ", ")})
	}
}
