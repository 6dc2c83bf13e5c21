package storage

import (
	"context"

	"iop/fsm"
)

// owner tells of a node or a provider: everything from the oldest base on that names it, or that a link of it, a grant
// or a return is a consequence of.
func (t *teller) owner(ctx context.Context, s Subject) error {
	p := t.past
	oldest, err := p.Oldest()
	if err != nil {
		return err
	}
	w, err := p.travel(oldest)
	if err != nil {
		return err
	}
	t.story.From = oldest + 1
	late := &lateLines{}
	defer late.tell(t)
	return w.to(ctx, p.End(), func(e *fsm.Entry, step fsm.Step) error {
		b := &e.Batches[step.Batch]
		c := b.Commands[step.Command]
		what := lateLine{entry: e, batch: b, command: c, outcome: step.Outcome, edge: w.machine.SessionEdge(b.Session)}
		if s.named(c, step.Outcome) {
			late.add(what)
		}
		for i := range step.Effects {
			f := &step.Effects[i]
			if f.Kind == fsm.EffectLinkFenced && f.Node == s.Node || f.Kind != fsm.EffectLinkFenced && s.granted(&f.Grant) {
				copied := *f
				what.effect = &copied
				late.add(what)
			}
		}
		return nil
	})
}

// lateLine is a line that is written only once it is known that it is among the last: a busy provider has millions.
type lateLine struct {
	entry   *fsm.Entry
	batch   *fsm.Batch
	command fsm.Command
	outcome *fsm.Outcome
	effect  *fsm.Effect // nil = the line is about the command's outcome
	edge    fsm.EdgeID
}

func (w *lateLine) line(s *Subject) Line {
	l := Line{
		Index: w.entry.Index, Time: wallTime(w.entry.Wall), Command: kindOf(w.command), Session: uint64(w.batch.Session), Edge: string(w.edge),
		Node: string(s.Node), Provider: string(s.Provider),
	}
	if f := w.effect; f != nil {
		l.Outcome, l.Text = effectName(f.Kind), tellEffectOf(f)+"; because of "+tell(w.command)
		l.Lease, l.Request, l.Generation = uint64(f.Grant.Lease), string(f.Request), uint64(f.Generation)
		return l
	}
	o := w.outcome
	l.Outcome, l.Text = outcomeOf(o), tell(w.command)+": "+tellOutcome(o)
	l.Lease, l.Request, l.Generation = uint64(o.Grant.Lease), string(o.Grant.Request), uint64(max(o.Generation, o.Grant.Generation))
	return l
}

type lateLines struct {
	list    []lateLine
	dropped int
}

func (l *lateLines) add(line lateLine) {
	if len(l.list) >= 2*LinesMax {
		l.list = append(l.list[:0], l.list[LinesMax:]...)
		l.dropped += LinesMax
	}
	l.list = append(l.list, line)
}

func (l *lateLines) tell(t *teller) {
	surplus := max(0, len(l.list)-LinesMax)
	t.story.Dropped += l.dropped + surplus
	for i := range l.list[surplus:] {
		t.add(l.list[surplus+i].line(&t.story.Subject))
	}
}

func (s *Subject) granted(g *fsm.Grant) bool {
	return g.Lease != 0 && (s.Provider != "" && g.Provider == s.Provider || s.Node != "" && g.Node == s.Node)
}

// named tells whether a command is about the node or the provider, or gave out one of its slots.
func (s *Subject) named(c fsm.Command, o *fsm.Outcome) bool {
	node, provider := about(c)
	if s.Node != "" && node == s.Node || s.Provider != "" && provider == s.Provider {
		return true
	}
	_, config := c.(*fsm.ApplyConfig)
	joined := o.Code == fsm.Joined && s.Node != "" && o.Grant.Node == s.Node
	return config || joined || s.granted(&o.Grant)
}

// about returns the node and the provider that a command names.
func about(c fsm.Command) (fsm.NodeID, fsm.ProviderID) {
	switch c := c.(type) {
	case *fsm.RegisterNode:
		return c.Node, ""
	case *fsm.NodeReady:
		return c.Node, ""
	case *fsm.LinkLost:
		return c.Node, ""
	case *fsm.LinkReport:
		return c.Node, ""
	case *fsm.SetHealth:
		return c.Node, c.Provider
	case *fsm.Drain:
		return c.Node, c.Provider
	case *fsm.AddJoin:
		return c.Node, ""
	case *fsm.Admit:
		return "", c.Provider
	}
	return "", ""
}

func effectName(k fsm.EffectKind) string {
	switch k {
	case fsm.EffectGranted:
		return "granted"
	case fsm.EffectEnded:
		return "ended"
	case fsm.EffectReturned:
		return "returned"
	case fsm.EffectLinkFenced:
		return "link_fenced"
	case fsm.EffectSessionEnded:
		return "session_ended"
	case fsm.EffectDrained:
		return "drained"
	}
	return "config"
}
