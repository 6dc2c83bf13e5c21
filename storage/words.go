package storage

import (
	"fmt"
	"strings"
	"time"

	"iop/fsm"
)

// kindOf names a command's kind, as proto/recordpb/record.proto does.
func kindOf(c fsm.Command) string {
	switch c.(type) {
	case *fsm.OpenSession:
		return "open_session"
	case *fsm.EndSession:
		return "end_session"
	case *fsm.Admit:
		return "admit"
	case *fsm.Cancel:
		return "cancel"
	case *fsm.Release:
		return "release"
	case *fsm.Evict:
		return "evict"
	case *fsm.RegisterNode:
		return "register_node"
	case *fsm.NodeReady:
		return "node_ready"
	case *fsm.LinkLost:
		return "link_lost"
	case *fsm.LinkReport:
		return "link_report"
	case *fsm.SetHealth:
		return "set_health"
	case *fsm.Drain:
		return "drain"
	case *fsm.ApplyConfig:
		return "apply_config"
	case *fsm.Expire:
		return "expire"
	case *fsm.AddJoin:
		return "add_join"
	case *fsm.RedeemJoin:
		return "redeem_join"
	case *fsm.Announce:
		return "announce"
	case *fsm.RaiseLevel:
		return "raise_level"
	case *fsm.DigestCheck:
		return "digest_check"
	case *fsm.Submit:
		return "submit"
	case *fsm.Progress:
		return "progress"
	case *fsm.Keep:
		return "keep"
	case *fsm.Forget:
		return "forget"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", c), "*fsm.")
}

// Kinds are the names that a filter can ask for.
func Kinds() []string {
	return []string{
		"open_session", "end_session", "admit", "cancel", "release", "register_node", "node_ready", "link_lost", "link_report",
		"set_health", "drain", "apply_config", "expire", "raise_level", "digest_check", "announce", "add_join",
		"redeem_join", "submit", "progress", "keep", "forget", "evict",
	}
}

// tell says what a command asks for.
func tell(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.OpenSession:
		return fmt.Sprintf("a new session of edge %s", c.Edge)
	case *fsm.EndSession:
		return fmt.Sprintf("the end of session %d of edge %s (%s)", c.Session, c.Edge, c.Reason)
	case *fsm.Admit:
		if c.Provider != "" {
			return fmt.Sprintf("admission of %s for provider %s, beside the queue (%s, %d input tokens)", c.Request, c.Provider, c.Class, c.InputTokens)
		}
		whose := ""
		if c.Principal != "" {
			whose = " of " + string(c.Principal)
		}
		return fmt.Sprintf("admission of %s%s for model %s (%s, %d input tokens)", c.Request, whose, c.Model, c.Class, c.InputTokens)
	case *fsm.Cancel:
		return fmt.Sprintf("cancel of %s", c.Request)
	case *fsm.Evict:
		return fmt.Sprintf("removal of %s from the queue by an operator", c.Request)
	case *fsm.Release:
		text := fmt.Sprintf("release of lease %d (%s)", c.Lease, c.Reason)
		if u := c.Usage; u.Told {
			text += fmt.Sprintf(", %d tokens in (%d cached), %d out (%d of reasoning)", u.Prompt, u.Cached, u.Completion, u.Reasoning)
		}
		switch {
		case c.Requeue && c.Unsent:
			text += ", never sent, back to its place in the queue"
		case c.Requeue:
			text += ", back to its place in the queue without this provider"
		}
		return text
	case *fsm.ApplyConfig:
		return "a new configuration"
	case *fsm.Expire:
		return "the expiry of what was overdue"
	case *fsm.AddJoin:
		return fmt.Sprintf("a join token for node %s, good for %v", c.Node, time.Duration(c.TTL))
	case *fsm.RedeemJoin:
		return "the use of a join token"
	case *fsm.Announce:
		return "word that nodes reach its edge at " + c.Address
	case *fsm.RaiseLevel:
		return fmt.Sprintf("feature level %d", c.Level)
	case *fsm.DigestCheck:
		if c.Index == 0 {
			return "a mark at which the replicas' states are compared"
		}
		return fmt.Sprintf("the comparison of the replicas' states at index %d", c.Index)
	case *fsm.Drain:
		what := "provider " + string(c.Provider)
		if c.Provider == "" {
			what = "node " + string(c.Node)
		}
		if c.On {
			return "draining " + what
		}
		return "the end of draining " + what
	}
	return tellResponse(c)
}

func tellLink(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.RegisterNode:
		text := "registration of node " + string(c.Node)
		if c.Supersede != 0 {
			text += fmt.Sprintf(" in place of generation %d", c.Supersede)
		}
		if len(c.Running) > 0 {
			text += fmt.Sprintf(", which still runs leases %v", c.Running)
		}
		return text
	case *fsm.NodeReady:
		return fmt.Sprintf("node %s being ready, generation %d", c.Node, c.Generation)
	case *fsm.LinkLost:
		return fmt.Sprintf("the loss of the link of node %s, generation %d (%s)", c.Node, c.Generation, c.Reason)
	case *fsm.LinkReport:
		return fmt.Sprintf("the report of node %s that of generation %d it runs leases %v", c.Node, c.Generation, c.Running)
	case *fsm.SetHealth:
		text := fmt.Sprintf("provider %s being %s", c.Provider, c.Health)
		if c.Cause != "" {
			text += " (" + c.Cause + ")"
		}
		return text
	}
	return kindOf(c)
}

// outcomeOf names an outcome: its code, or the refusal.
func outcomeOf(o *fsm.Outcome) string {
	if o.Code == fsm.Refused {
		return o.Refusal.String()
	}
	return o.Code.String()
}

func tellOutcome(o *fsm.Outcome) string {
	switch o.Code {
	case fsm.Granted:
		g := &o.Grant
		return fmt.Sprintf("granted lease %d of %s (node %s, generation %d)", g.Lease, g.Provider, g.Node, g.Generation)
	case fsm.Queued:
		if o.Position == 0 {
			return fmt.Sprintf("queued at its old place %d", o.Enqueue)
		}
		return fmt.Sprintf("queued at position %d, place %d", o.Position, o.Enqueue)
	case fsm.Refused:
		return "refused: " + o.Refusal.String()
	case fsm.Holds:
		return fmt.Sprintf("it holds lease %d, which stays", o.Grant.Lease)
	case fsm.SessionOpened:
		return fmt.Sprintf("session %d", o.Session)
	case fsm.Registered:
		return fmt.Sprintf("registered, generation %d", o.Generation)
	case fsm.Joined:
		return "joined as node " + string(o.Grant.Node)
	case fsm.Applied:
		return fmt.Sprintf("applied, revision %d", o.Revision)
	}
	return o.Code.String()
}

// tellEffectOf says what happened as a consequence.
func tellEffectOf(f *fsm.Effect) string {
	g := &f.Grant
	switch f.Kind {
	case fsm.EffectGranted:
		return fmt.Sprintf("%s was granted lease %d of %s", f.Request, g.Lease, g.Provider)
	case fsm.EffectEnded:
		return fmt.Sprintf("%s left the queue: %s", f.Request, f.Refusal)
	case fsm.EffectReturned:
		return fmt.Sprintf("lease %d of %s (%s) was returned: %s", g.Lease, f.Request, g.Provider, f.Reason)
	case fsm.EffectLinkFenced:
		return fmt.Sprintf("the link of node %s, generation %d, was fenced: %s", f.Node, f.Generation, f.Reason)
	case fsm.EffectSessionEnded:
		return fmt.Sprintf("session %d of edge %s ended: %s", f.Session, f.Edge, f.Reason)
	case fsm.EffectDrained:
		what := "node " + string(f.Node)
		if f.Provider != "" {
			what = "provider " + string(f.Provider)
		}
		return fmt.Sprintf("node %s is told over generation %d that draining %s is %s", f.Node, f.Generation, what, onOff(f.On))
	case fsm.EffectUnwanted:
		return fmt.Sprintf("the run of %s on lease %d is of no use any more", f.Request, g.Lease)
	case fsm.EffectConfig:
		return fmt.Sprintf("the configuration has revision %d", f.Revision)
	}
	return ""
}
