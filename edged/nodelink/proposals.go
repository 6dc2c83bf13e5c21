package nodelink

import (
	"context"
	"sync"
	"time"

	"iop/fsm"
)

// proposals is what one link has to command, kept as a state rather than a queue, so that it is bounded: only the
// newest health of a provider and the newest report of a generation count.
type proposals struct {
	wake chan struct{} // has one place

	mu      sync.Mutex
	ready   bool
	health  map[fsm.ProviderID]fsm.SetHealth
	reports map[fsm.Generation]fsm.LinkReport
	ended   bool
	lost    bool // LinkLost has to be commanded
	reason  fsm.Reason
}

// proposalsMax bounds the health and report entries of one link, against a node that invents names.
const proposalsMax = 4096

func newProposals() *proposals {
	return &proposals{
		wake:   make(chan struct{}, 1),
		health: map[fsm.ProviderID]fsm.SetHealth{}, reports: map[fsm.Generation]fsm.LinkReport{},
	}
}

func (p *proposals) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *proposals) setReady() {
	p.mu.Lock()
	p.ready = true
	p.mu.Unlock()
	p.signal()
}

func (p *proposals) setHealth(h fsm.SetHealth) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.health[h.Provider]; !ok && len(p.health) >= proposalsMax {
		return false
	}
	p.health[h.Provider] = h
	p.signal()
	return true
}

func (p *proposals) setReport(r fsm.LinkReport) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.reports[r.Generation]; !ok && len(p.reports) >= proposalsMax {
		return false
	}
	p.reports[r.Generation] = r
	p.signal()
	return true
}

// end tells that the link is lost; propose: the machine has to be told.
func (p *proposals) end(reason fsm.Reason, propose bool) {
	p.mu.Lock()
	p.ended, p.lost, p.reason = true, propose, reason
	p.mu.Unlock()
	p.signal()
}

// next takes out the next command; nil and true: there will be none any more. The loss goes before all else, because
// what a lost link had to say is stale.
func (p *proposals) next(k *link) (cmd fsm.Command, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.lost:
		p.lost = false
		return &fsm.LinkLost{Node: k.node, Generation: k.generation, Reason: p.reason}, false
	case p.ended:
		return nil, true
	case p.ready:
		p.ready = false
		return &fsm.NodeReady{Node: k.node, Generation: k.generation}, false
	}
	for id, h := range p.health {
		delete(p.health, id)
		return &h, false
	}
	for g, r := range p.reports {
		delete(p.reports, g)
		return &r, false
	}
	return nil, false
}

// again puts back a command that had no outcome, unless a newer one has taken its place.
func (p *proposals) again(cmd fsm.Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c := cmd.(type) {
	case *fsm.LinkLost:
		p.lost = true
	case *fsm.NodeReady:
		p.ready = true
	case *fsm.SetHealth:
		if _, ok := p.health[c.Provider]; !ok {
			p.health[c.Provider] = *c
		}
	case *fsm.LinkReport:
		if _, ok := p.reports[c.Generation]; !ok {
			p.reports[c.Generation] = *c
		}
	}
}

// propose commands until the link is lost and the machine knows. ctx is the life of Links, not of the call: a loss is
// commanded although everything else is gone.
func (k *link) propose(ctx context.Context) {
	defer k.links.forget(k)
	pause := 20 * time.Millisecond
	for {
		cmd, over := k.proposals.next(k)
		if over {
			return
		}
		if cmd == nil {
			select {
			case <-k.proposals.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		out, err := k.links.o.Commands.Do(ctx, cmd)
		if err == nil {
			pause = 20 * time.Millisecond
			k.outcome(cmd, out)
			continue
		}
		if ctx.Err() != nil || k.links.o.Permanent(err) {
			k.links.o.Logger.Warn("link: a command has no outcome", "node", k.node, "generation", k.generation, "error", err)
			k.links.giveUp(k)
			return
		}
		k.proposals.again(cmd)
		k.rest(ctx, pause)
		pause = min(2*pause, time.Second)
	}
}

// rest waits before the next try; something newer to command, a loss above all, ends the wait.
func (k *link) rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.proposals.wake:
	case <-ctx.Done():
	}
}

// outcome acts on the machine's answer.
func (k *link) outcome(cmd fsm.Command, out fsm.Outcome) {
	switch cmd.(type) {
	case *fsm.NodeReady:
		if out.Code == fsm.Done {
			k.setReady()
			return
		}
		// The machine fenced it before: its effect is on the way, or came before the link was inserted.
		k.lose(fsm.ReasonLinkLost, false, false)
	case *fsm.LinkLost:
		k.links.o.Logger.Debug("link: fenced", "node", k.node, "generation", k.generation, "outcome", out.Code.String())
	}
}

func (k *link) setReady() {
	k.mu.Lock()
	k.ready = true
	k.mu.Unlock()
	k.links.o.Logger.Info("link: ready", "node", k.node, "generation", k.generation)
}
