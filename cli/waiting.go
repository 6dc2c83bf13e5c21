package cli

import (
	"fmt"
	"slices"
	"strings"

	"iop/edged/adminapi"
	"iop/fsm"
)

// waiting is the JSON of requests explain without a request: why what waits does, the many told by the few causes.
type waiting struct {
	Pending int         `json:"pending"`
	Groups  []waitGroup `json:"groups"` // in the order of their first in the queue
}

// waitGroup are waiters that wait for the same: of one model and class, with the same candidates in the same state.
type waitGroup struct {
	Model      string       `json:"model"`
	Class      string       `json:"class"`
	Count      int          `json:"count"`
	First      string       `json:"first_request"`  // of them in the queue
	Position   int          `json:"first_position"` // of it, from 1
	OldestMS   int64        `json:"oldest_age_ms"`
	Candidates []waitReason `json:"candidates"`
}

// waitReason is why one provider does not take them, and what would have to happen.
type waitReason struct {
	Provider string `json:"provider"`
	Node     string `json:"node"`
	Reason   string `json:"reason"`
	Needed   string `json:"needed"` // for people
}

// waitGroups sums up a queue.
func waitGroups(waiters []adminapi.Waiter, providers []adminapi.Provider) []waitGroup {
	known := make(map[string]*adminapi.Provider, len(providers))
	for i := range providers {
		known[providers[i].ID] = &providers[i]
	}
	at, groups := map[string]int{}, []waitGroup{}
	for i := range waiters {
		w := &waiters[i]
		key := fmt.Sprintf("%q %q %v", w.Model, w.Class, w.Candidates)
		n, ok := at[key]
		if !ok {
			n = len(groups)
			at[key] = n
			groups = append(groups, waitGroup{
				Model: w.Model, Class: w.Class, First: w.Request, Position: w.Position, Candidates: waitReasons(w.Candidates, known),
			})
		}
		groups[n].Count++
		groups[n].OldestMS = max(groups[n].OldestMS, w.AgeMS)
	}
	return groups
}

func waitReasons(list []adminapi.Candidate, known map[string]*adminapi.Provider) []waitReason {
	out := make([]waitReason, 0, len(list))
	for _, c := range list {
		r := waitReason{Provider: c.Provider, Reason: c.Reason}
		cause := ""
		if p := known[c.Provider]; p != nil {
			r.Node, cause = p.Node, p.Cause
		}
		r.Needed = adminapi.Needed(c.Reason, c.Provider, r.Node, cause)
		out = append(out, r)
	}
	return out
}

// waiting is what a stopped replica's files tell.
func (x *offline) waiting() (*waiting, error) {
	queue, err := x.queue()
	if err != nil {
		return nil, err
	}
	s := x.machine.Snapshot()
	return &waiting{Pending: queue.Pending, Groups: waitGroups(queue.Waiters, nodesOf(s.Providers))}, nil
}

// nodesOf are providers as far as waitGroups wants to know them.
func nodesOf(views []fsm.ProviderView) []adminapi.Provider {
	out := make([]adminapi.Provider, len(views))
	for i := range views {
		out[i] = adminapi.Provider{ID: string(views[i].ID), Node: string(views[i].Node)}
	}
	return out
}

func showWaits(p *page, w *waiting) {
	if w.Pending == 0 {
		p.line("Nothing waits.")
		return
	}
	showGroups(p, w.Groups)
	p.line("")
	p.line("More of one of them: %s", explainCommand(w.Groups[0].First))
}

// explainCommand is what tells more of a request, if its id can be typed.
func explainCommand(request string) string {
	if printable(request) != request {
		return "iopctl requests explain"
	}
	return "iopctl requests explain " + shQuote(request)
}

func showGroups(p *page, groups []waitGroup) {
	for i := range groups {
		w := &groups[i]
		p.line("%s for model %s (%s), %s is number %d in the queue; %s.", waiters(w.Count), w.Model, w.Class, w.First, w.Position, oldest(w))
		for _, c := range w.Candidates {
			p.line("  %s on %s %s: %s.", c.Provider, orDash(c.Node), adminapi.Condition(c.Reason, false), c.Needed)
		}
		if len(w.Candidates) == 0 {
			p.line("  No provider serves it any more: it ends at its deadline, or with 'iopctl queue cancel'.")
		}
	}
}

func waiters(n int) string {
	if n == 1 {
		return "1 request waits"
	}
	return fmt.Sprintf("%d requests wait", n)
}

func oldest(w *waitGroup) string {
	if w.Count == 1 {
		return "for " + span(w.OldestMS)
	}
	return "the oldest for " + span(w.OldestMS)
}

// becauseNamesMax is how many providers are named that can't be had for the same reason.
const becauseNamesMax = 3

// because is why a group waits, in one line.
func because(w *waitGroup) string {
	parts := make([]string, 0, len(w.Candidates))
	byReason := map[string][]string{}
	var reasons []string // in order of their first candidates
	for _, c := range w.Candidates {
		if _, ok := byReason[c.Reason]; !ok {
			reasons = append(reasons, c.Reason)
		}
		byReason[c.Reason] = append(byReason[c.Reason], c.Provider)
	}
	for _, reason := range reasons {
		names := byReason[reason]
		several := len(names) > 1
		slices.Sort(names)
		if left := len(names) - becauseNamesMax; left > 0 {
			names = append(names[:becauseNamesMax], fmt.Sprintf("and %d more", left))
		}
		parts = append(parts, strings.Join(names, ", ")+" "+adminapi.Condition(reason, several))
	}
	if len(parts) == 0 {
		return "no provider serves it"
	}
	return strings.Join(parts, "; ")
}
