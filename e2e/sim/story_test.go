package sim

import (
	"fmt"
	"strings"

	"iop/fsm"
)

// story tells what the log had and what the machine said, an entry per line or more; of a failed run it is printed.
type story struct {
	on    bool
	lines []string
}

// storyMax is how many of the last lines are printed.
const storyMax = 60

func (s *story) addf(format string, args ...any) {
	if s.on {
		s.lines = append(s.lines, fmt.Sprintf(format, args...))
	}
}

func (s *story) entry(e *fsm.Entry, res *fsm.Result) {
	if !s.on {
		return
	}
	for i := range e.Batches {
		b := &e.Batches[i]
		for j, c := range b.Commands {
			s.addf("%4d s%d/%d %s -> %s", e.Index, b.Session, b.Seq, command(c), outcome(&res.Outcomes[i][j]))
		}
	}
	for i := range res.Effects {
		x := &res.Effects[i]
		s.addf("       %s", map[fsm.EffectKind]string{
			fsm.EffectGranted: fmt.Sprintf("granted %s to s%d: %s", x.Request, x.Session, grant(&x.Grant)),
			fsm.EffectEnded:   fmt.Sprintf("ended %s: %s", x.Request, x.Refusal), fsm.EffectReturned: fmt.Sprintf("returned lease %d of %s: %s", x.Grant.Lease, x.Request, x.Reason),
			fsm.EffectLinkFenced:   fmt.Sprintf("fenced %s/%d of %s: %s", x.Node, x.Generation, x.Edge, x.Reason),
			fsm.EffectSessionEnded: fmt.Sprintf("session s%d of %s ended: %s", x.Session, x.Edge, x.Reason), fsm.EffectConfig: fmt.Sprintf("revision %d", x.Revision),
		}[x.Kind])
	}
}

func command(c fsm.Command) string {
	if a, ok := c.(*fsm.ApplyConfig); ok {
		return fmt.Sprintf("ApplyConfig{%+v}", a.Config)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T%+v", c, c), "*fsm.")
}

func grant(g *fsm.Grant) string {
	return fmt.Sprintf("lease %d on %s over %s/%d", g.Lease, g.Provider, g.Node, g.Generation)
}

func outcome(o *fsm.Outcome) string {
	switch o.Code {
	case fsm.Granted, fsm.Holds:
		return o.Code.String() + " " + grant(&o.Grant)
	case fsm.Refused:
		return "refused " + o.Refusal.String()
	case fsm.Queued:
		return fmt.Sprintf("queued, place %d", o.Enqueue)
	case fsm.Registered:
		return fmt.Sprintf("generation %d, counted %v", o.Generation, o.Counted)
	}
	return o.Code.String()
}
