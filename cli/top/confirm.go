package top

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"iop/edged/adminapi"
)

// actionWait is how long an action or an explanation may take.
const actionWait = 15 * time.Second

// question is an action that waits for a yes. It is about what was seen when it was asked, whatever has come since.
type question struct {
	text string
	do   func(context.Context) error
	then string // said when it is done
}

// done is how an action went.
type done struct {
	text string
	err  error
}

// askDrain asks whether the provider at the cursor should be drained, or that taken back.
func (m *model) askDrain() {
	l, ok := m.panes[m.active].(*list[provider])
	if !ok {
		m.say(busy, "What can be drained is in the list of providers: key 1.")
		return
	}
	p, ok := l.current()
	switch {
	case !ok || !m.mayChange():
	case p.Draining && p.nodeDrains:
		m.say(busy, "Node "+p.Node+" drains, and so all its providers do: D takes that back.")
	case p.Draining:
		m.question = m.drainQuestion(adminapi.Drain{Provider: p.ID}, "Let provider "+p.ID+" take requests again?")
	default:
		m.question = m.drainQuestion(adminapi.Drain{Provider: p.ID, On: true}, fmt.Sprintf(
			"Drain provider %s? It gets no new requests; %s to the end. It stays so, over restarts, until it is taken back.",
			p.ID, goOn(p.InFlight)))
	}
}

// askDrainNode asks the same of the whole node.
func (m *model) askDrainNode() {
	l, ok := m.panes[m.active].(*list[provider])
	if !ok {
		m.askDrain()
		return
	}
	p, ok := l.current()
	switch {
	case !ok || !m.mayChange():
	case p.nodeDrains:
		m.question = m.drainQuestion(adminapi.Drain{Node: p.Node}, "Let node "+p.Node+" take requests again?")
	default:
		n, running := 0, 0
		for _, other := range m.shown.providers {
			if other.Node == p.Node {
				n, running = n+1, running+other.InFlight
			}
		}
		m.question = m.drainQuestion(adminapi.Drain{Node: p.Node, On: true}, fmt.Sprintf(
			"Drain node %s? Its %s gets no new requests; %s to the end. It stays so, over restarts, until it is taken back.",
			p.Node, plural(n, "provider"), goOn(running)))
	}
}

func goOn(n int) string {
	if n == 1 {
		return "the 1 that runs goes on"
	}
	return fmt.Sprintf("the %d that run go on", n)
}

func (m *model) drainQuestion(d adminapi.Drain, text string) *question {
	name := "Provider " + d.Provider
	if d.Provider == "" {
		name = "Node " + d.Node
	}
	then := name + " takes requests again."
	if d.On {
		then = name + " gets no new requests."
	}
	return &question{text: text, then: then, do: func(ctx context.Context) error { return m.o.Drain(ctx, d) }}
}

// askCancel asks whether the waiter at the cursor should leave the queue.
func (m *model) askCancel() {
	l, ok := m.panes[m.active].(*list[waiter])
	if !ok {
		m.say(busy, "What can be canceled is in the queue: key 2. What runs is its client's to end.")
		return
	}
	w, ok := l.current()
	if !ok || !m.mayChange() {
		return
	}
	id := w.Request
	m.question = &question{
		text: fmt.Sprintf("Take request %s (model %s) out of the queue? Its client gets an error: 503, canceled_by_operator.", id, w.Model),
		then: "Request " + id + " has left the queue.",
		do:   func(ctx context.Context) error { return m.o.Cancel(ctx, id) },
	}
}

// mayChange tells whether something can be changed from here, and says why not.
func (m *model) mayChange() bool {
	switch {
	case m.lost != nil:
		m.say(bad, "Not connected: what is shown is old, so nothing is changed from here.")
	case m.paused:
		m.say(busy, "Paused: what is shown is old. Go on with p first.")
	case m.newest.head.Actions == adminapi.ActionsReadOnly:
		m.say(bad, "This token may only look (edge.admin.view_token). To change something, start top with the admin token: IOP_TOKEN or --token.")
	case m.newest.head.Actions == adminapi.ActionsTokenNeeded:
		m.say(bad, "The edge wants the admin token for changes: configure edge.admin.token and start top with IOP_TOKEN or --token.")
	default:
		return true
	}
	return false
}

// answer is a key while a question waits: only y is a yes, so that no key that was meant for the list does something.
func (m *model) answer(name string) {
	switch name {
	case "y", "Y":
		q := m.question
		m.question = nil
		m.say(plain, "Asking the edge"+m.ellipsis())
		m.start(func(ctx context.Context) tea.Msg {
			ctx, cancel := context.WithTimeout(ctx, actionWait)
			defer cancel()
			return done{text: q.then, err: q.do(ctx)}
		})
	case "n", "N", "esc", "q":
		m.question = nil
		m.say(plain, "Nothing was changed.")
	}
}

func (m *model) ellipsis() string { return " " + m.scene.glyphs.more }

func (m *model) did(d done) {
	if d.err != nil {
		m.say(bad, "Not done: "+faultText(d.err))
		return
	}
	m.say(good, d.text)
}

// faultText is an error and its cure.
func faultText(err error) string {
	text := err.Error()
	var r interface{ Remedy() string }
	if errors.As(err, &r) && r.Remedy() != "" {
		text += "; cure: " + r.Remedy()
	}
	return text
}
