package cli

import (
	"fmt"
	"slices"
	"strings"

	"iop/edged/adminapi"
)

// note is something that an operator would want to look at, and the command that tells more.
type note struct {
	text  string
	more  string // "" = there is nothing to ask
	paint paint
}

// notesMax is how many notes of one kind are shown.
const notesMax = 5

// notes are what stands out, the worst first.
func notes(s *adminapi.Status, x *extras) []note {
	var out []note
	if s.Leader == "" {
		out = append(out, note{"There is no leader that this edge knows of: nothing is admitted until there is one.", "iopctl cluster members -o wide", paintBad})
	}
	out = append(out, memberNotes(x.members, s.Leader != "")...)
	if s.Queue.Max > 0 && s.Queue.Pending*10 >= s.Queue.Max*8 {
		full := "The queue is nearly full: more than %d are refused with 429 (queue_full)."
		if s.Queue.Pending >= s.Queue.Max {
			full = "The queue is full: what comes beyond %d is refused with 429 (queue_full)."
		}
		out = append(out, note{fmt.Sprintf(full, s.Queue.Max), "iopctl requests explain", paintBad})
	}
	out = append(out, waiterNotes(s, x.queue)...)
	out = append(out, nodeNotes(s)...)
	out = append(out, drainNotes(s, x.drained)...)
	out = append(out, providerNotes(s, x.drained)...)
	return append(out, fencedNotes(s)...)
}

// silentNotes are of edges that were asked in vain.
func silentNotes(silent []string) []note {
	out := make([]note, 0, len(silent))
	for _, s := range silent {
		out = append(out, note{"No answer from the edge at " + s + ".", "", paintBad})
	}
	return out
}

func memberNotes(x *adminapi.Cluster, led bool) []note {
	if x == nil || len(x.Members) < 2 {
		return nil
	}
	var silent []string
	voters, mute := 0, 0
	for i := range x.Members {
		m := &x.Members[i]
		if m.Role == "" {
			silent = append(silent, m.ID)
		}
		if m.Voter {
			voters++
			if m.Role == "" {
				mute++
			}
		}
	}
	if len(silent) == 0 {
		return nil
	}
	out := []note{{
		fmt.Sprintf("No answer from %s, of %d replicas (%d vote).", strings.Join(silent, ", "), len(x.Members), voters), "iopctl cluster members -o wide", paintBad,
	}}
	switch left := voters - mute; {
	case mute == 0:
	case 2*left <= voters && led: // those that are silent here are heard elsewhere, or have only just gone
	case 2*left <= voters:
		out = append(out, note{
			fmt.Sprintf("That leaves %d of %d votes, which is no majority. Start edged there: %d more will do. Only if they are lost for good, stop this edge and make it the only one.", left, voters, voters/2+1-left),
			"iopctl cluster recover --help", paintBad,
		})
	case 2*(left-1) <= voters:
		out = append(out, note{fmt.Sprintf("If one more of the %d that vote is lost, nothing is admitted.", left), "", paintBusy})
	}
	return out
}

func waiterNotes(s *adminapi.Status, queue *adminapi.WaiterList) []note {
	if queue == nil {
		return nil
	}
	groups := waitGroups(queue.Waiters, s.Providers)
	var out []note
	for i := range groups {
		w := &groups[i]
		if i == notesMax {
			out = append(out, note{"Others wait for other reasons.", "iopctl requests explain", paintBusy})
			break
		}
		out = append(out, note{
			fmt.Sprintf("%s for model %s (%s), for %s: %s.", waiters(w.Count), w.Model, w.Class, span(w.OldestMS), because(w)),
			explainCommand(w.First), paintBusy,
		})
	}
	return out
}

// nodeNotes are of nodes that are not linked, known by their providers.
func nodeNotes(s *adminapi.Status) []note {
	var nodes []string
	providers := map[string][]string{}
	for i := range s.Providers {
		if v := &s.Providers[i]; !v.Connected && v.Status != "removed" {
			if providers[v.Node] == nil {
				nodes = append(nodes, v.Node)
			}
			providers[v.Node] = append(providers[v.Node], v.ID)
		}
	}
	slices.Sort(nodes)
	var out []note
	for i, n := range nodes {
		if i == notesMax {
			out = append(out, note{fmt.Sprintf("%d more nodes are not connected.", len(nodes)-i), "iopctl nodes list", paintBad})
			break
		}
		out = append(out, note{
			fmt.Sprintf("Node %s is not connected: %s can't be used. See noded's log there.", n, strings.Join(providers[n], ", ")), "iopctl nodes show " + shQuote(n), paintBad,
		})
	}
	return out
}

// drainNotes are of nodes that are drained: undraining their providers would change nothing.
func drainNotes(s *adminapi.Status, drained []string) []note {
	var out []note
	for i, n := range drained {
		if i == notesMax {
			return append(out, note{fmt.Sprintf("%d more nodes are drained.", len(drained)-i), "iopctl nodes list", paintBusy})
		}
		out = append(out, note{
			fmt.Sprintf("Node %s is drained: %s.", n, still(running(s.Providers, &adminapi.Drain{Node: n}))), "iopctl nodes undrain " + shQuote(n), paintBusy,
		})
	}
	return out
}

func providerNotes(s *adminapi.Status, drained []string) []note {
	var out []note
	for i := range s.Providers {
		v := &s.Providers[i]
		switch {
		case len(out) == notesMax:
			return append(out, note{"And more providers.", "iopctl providers list -o wide", paintBad})
		case v.Health == "degraded":
			cause := ""
			if v.Cause != "" {
				cause = ": " + v.Cause
			}
			out = append(out, note{fmt.Sprintf("Provider %s on %s is degraded%s.", v.ID, v.Node, cause), "iopctl providers show " + shQuote(v.ID), paintBad})
		case v.Draining && !slices.Contains(drained, v.Node):
			out = append(out, note{
				fmt.Sprintf("Provider %s on %s is drained: %s.", v.ID, v.Node, still(v.InFlight)), "iopctl providers undrain " + shQuote(v.ID), paintBusy,
			})
		}
	}
	return out
}

func fencedNotes(s *adminapi.Status) []note {
	n := 0
	for _, l := range s.Links {
		if l.State == "fenced" {
			n += l.Leases
		}
	}
	if n == 0 {
		return nil
	}
	return []note{{
		fmt.Sprintf("%d slots are held by lost links, until their nodes tell how it ended or the fence timeout is over.", n), "iopctl leases list", paintBusy,
	}}
}

func showNotes(p *page, list []note) {
	if len(list) == 0 {
		return
	}
	p.line("")
	for _, n := range list {
		more := ""
		if n.more != "" {
			more = "  -> " + n.more
		}
		text := printable(n.text)
		if p.color {
			text = p.painted(cell{text, n.paint})
		}
		p.text.WriteString("! " + text + printable(more) + "\n")
	}
}
