package fsm_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	. "iop/fsm"
)

// outcome tells a command's outcome in words: its subject first.
func (s *script) outcome(c Command, o Outcome) string {
	switch o.Code {
	case Granted, Holds:
		return s.grantWords(o.Grant, o.Code.String())
	case Queued:
		if o.Position == 0 {
			return s.subject(c) + " queued at its old place"
		}
		return fmt.Sprintf("%s queued position=%d", s.subject(c), o.Position)
	case Refused:
		w := s.subject(c) + " refused " + o.Refusal.String()
		if o.Refusal == RefusalConflict {
			w += fmt.Sprint(" revision=", o.Revision)
		}
		return w
	case SessionOpened:
		return fmt.Sprintf("%s opened %s", s.subject(c), s.names[o.Session])
	case Registered:
		w := fmt.Sprintf("%s registered generation=%d", s.subject(c), o.Generation)
		if len(o.Counted) > 0 {
			w += " counted=" + strings.Join(s.leaseNames(o.Counted), ",")
		}
		return w
	case Joined:
		return fmt.Sprintf("%s joined as %s", s.subject(c), o.Grant.Node)
	case Applied:
		return fmt.Sprintf("revision %d applied", o.Revision)
	case Done:
		if _, ok := c.(*Expire); ok {
			return fmt.Sprint("overdue ended=", o.Count)
		}
	}
	return s.subject(c) + " " + o.Code.String()
}

func (s *script) grantWords(g Grant, how string) string {
	w := fmt.Sprintf("%s %s %s", requestWords(g.Request), how, g.Provider)
	if g.Generation != 1 {
		w += fmt.Sprintf(" over=%s/%d", g.Node, g.Generation)
	}
	if g.Served != string(g.Model) {
		w += " served=" + g.Served
	}
	return w
}

func requestWords(id RequestID) string {
	if id == "" || len(id) > 40 {
		return fmt.Sprintf("request-of-%d-bytes", len(id))
	}
	return string(id)
}

func (s *script) leaseNames(ids []LeaseID) []string {
	var names []string
	for _, id := range ids {
		names = append(names, s.held[id])
	}
	return names
}

// subject is what a command is about.
func (s *script) subject(c Command) string {
	switch c := c.(type) {
	case *OpenSession:
		return string(c.Edge)
	case *EndSession:
		return s.names[c.Session]
	case *Admit:
		return requestWords(c.Request)
	case *Announce:
		return fmt.Sprintf("address %q", c.Address)
	case *Cancel:
		return string(c.Request)
	case *Evict:
		return string(c.Request)
	case *Release:
		if name, ok := s.held[c.Lease]; ok {
			return name
		}
		return fmt.Sprint("lease-", c.Lease)
	case *RegisterNode:
		return string(c.Node)
	case *NodeReady:
		return fmt.Sprintf("%s/%d ready", c.Node, c.Generation)
	case *LinkLost:
		return fmt.Sprintf("%s/%d lost", c.Node, c.Generation)
	case *LinkReport:
		return fmt.Sprintf("%s/%d reported", c.Node, c.Generation)
	case *SetHealth:
		return fmt.Sprintf("%s %s", c.Provider, c.Health)
	case *Drain:
		what := string(c.Provider)
		if what == "" {
			what = string(c.Node)
		}
		return fmt.Sprintf("%s draining=%v", what, c.On)
	case *ApplyConfig:
		return "revision"
	case *AddJoin:
		return "token " + tokenName(c.Token)
	case *RedeemJoin:
		return "token " + tokenName(c.Token)
	case *Submit:
		return string(c.Response)
	case *Progress:
		return fmt.Sprintf("%s %s", c.Response, c.Status)
	case *Keep:
		return fmt.Sprintf("%s kept", c.Response)
	case *Forget:
		return fmt.Sprintf("%s forgotten", c.Response)
	case *RaiseLevel:
		return fmt.Sprint("level ", c.Level)
	case *DigestCheck:
		return fmt.Sprint("check of ", c.Index)
	}
	return "overdue"
}

// effect tells an effect in words; its addressee only where there could be another.
func (s *script) effect(f Effect) string {
	var w string
	switch f.Kind {
	case EffectGranted:
		w = s.grantWords(f.Grant, "granted")
	case EffectEnded:
		w = fmt.Sprintf("%s ended %s", f.Request, f.Refusal)
	case EffectReturned:
		w = fmt.Sprintf("%s returned reason=%s", f.Grant.Request, f.Reason)
	case EffectLinkFenced:
		w = fmt.Sprintf("%s/%d fenced reason=%s", f.Node, f.Generation, f.Reason)
	case EffectSessionEnded:
		return fmt.Sprintf("%s of %s ended reason=%s", s.names[f.Session], f.Edge, f.Reason)
	case EffectDrained:
		w = fmt.Sprintf("%s told draining=%v", cmp.Or(string(f.Provider), string(f.Node)), f.On)
	case EffectUnwanted:
		w = fmt.Sprintf("%s unwanted at %s", f.Request, f.Grant.Provider)
	case EffectConfig:
		return fmt.Sprintf("revision %d in force", f.Revision)
	}
	if f.Session == 0 {
		return w + " to=nobody"
	}
	if len(s.names) > 1 {
		w += " to=" + s.names[f.Session]
	}
	return w
}

// show tells a part of the state in words.
func (s *script) show(a *args) {
	tell := func(format string, v ...any) { s.out = append(s.out, fmt.Sprintf(format, v...)) }
	sn := s.m.Snapshot()
	switch a.word() {
	case "queue":
		tell("pending=%d long=%d detached=%d", sn.Queue.Pending, sn.Queue.LongPending, sn.Queue.Detached)
		for _, v := range s.m.Waiters() {
			var why []string
			for _, c := range v.Candidates {
				why = append(why, string(c.Provider)+":"+c.Reason)
			}
			tell("%d. %s %s %s", v.Position, v.ID, v.State, strings.Join(why, " "))
		}
	case "leases":
		tell("leases=%d granted=%d returned=%d", len(s.m.Leases()), sn.Granted, sn.Returned)
		for _, v := range s.m.Leases() {
			tell("lease-%d %s %s %s over=%s/%d %s", v.Lease, v.ID, v.Class, v.Provider, v.Node, v.Generation, v.State)
		}
	case "providers":
		for _, v := range sn.Providers {
			tell("%s %s %s connected=%v in_flight=%d/%d long=%d/%d fencing=%d queued=%d long_queued=%d", v.ID, v.Status,
				v.Health, v.Connected, v.InFlight, v.Capacity, v.LongInFlight, v.LongCapacity, v.Fencing, v.Queued, v.LongQueued)
		}
	case "nodes":
		for _, v := range sn.Nodes {
			w := fmt.Sprintf("%s connected=%v generation=%d draining=%v", v.ID, v.Connected, v.Generation, v.Draining)
			for _, l := range v.Links {
				w += fmt.Sprintf(" %d:%s:%s:%d", l.Generation, l.Edge, l.State, l.Leases)
			}
			tell("%s", w)
		}
	case "sessions":
		for _, v := range sn.Sessions {
			tell("%s of %s in_grace=%v", s.names[v.ID], v.Edge, v.InGrace)
		}
	case "responses":
		s.showResponses()
	case "level":
		tell("level=%d checked=%d", s.m.Level(), s.m.Checked())
	case "addresses":
		for _, e := range []EdgeID{"e1", "e2", "e3"} {
			tell("reach %s at %q", e, s.m.Address(e))
		}
	case "principals":
		for _, v := range s.m.Principals() {
			tell("%s in_flight=%d/%d queued=%d/%d", v.ID, v.InFlight, v.MaxInFlight, v.Queued, v.MaxQueued)
		}
	case "usage":
		for _, u := range s.m.Usage() {
			tell("day=%d %s %s %s %s requests=%d aborted=%d untold=%d tokens=%d,%d,%d,%d", u.Day, u.Principal, u.Token, u.Model, u.Provider,
				u.Requests, u.Aborted, u.Untold, u.Prompt, u.Completion, u.Cached, u.Reasoning)
		}
	case "joins":
		for _, j := range s.m.Joins() {
			tell("token %s for %s until %v forgotten %v used=%s", tokenName(j.Token), j.Node, time.Duration(j.Until),
				time.Duration(j.Forget), tokenName(j.NodeToken))
		}
		for _, v := range sn.Nodes {
			t, own := s.m.NodeToken(v.ID)
			tell("%s token=%s own=%v", v.ID, tokenName(t), own)
		}
	case "deadline":
		if at, some := s.m.NextDeadline(); some {
			tell("deadline in %v", time.Duration(at-s.elapsed))
		} else {
			tell("deadline none")
		}
	default:
		s.t.Fatalf("%q: no such thing", a.line)
	}
}

func tokenName(h TokenHash) string { return strings.TrimRight(string(h[:]), "\x00") }
