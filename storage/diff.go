package storage

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"

	"iop/fsm"
)

// Diff says in words what is different after entry to from what was after entry from, one thing a line.
func (p *Past) Diff(ctx context.Context, from, to uint64) ([]string, error) {
	a, err := p.At(ctx, from)
	if err != nil {
		return nil, err
	}
	b, err := p.At(ctx, to)
	if err != nil {
		return nil, err
	}
	d := &difference{a: a.Image(), b: b.Image()}
	d.config()
	rows(d, d.a.Sessions, d.b.Sessions, func(r *fsm.SessionRow) fsm.SessionID { return r.ID }, d.session)
	rows(d, d.a.Nodes, d.b.Nodes, func(r *fsm.NodeRow) fsm.NodeID { return r.ID }, d.node)
	rows(d, d.a.Providers, d.b.Providers, func(r *fsm.ProviderRow) fsm.ProviderID { return r.Config.ID }, d.provider)
	rows(d, d.a.Requests, d.b.Requests, func(r *fsm.RequestRow) fsm.RequestID { return r.ID }, d.request)
	rows(d, d.a.Responses, d.b.Responses, func(r *fsm.ResponseRow) fsm.ResponseID { return r.ID }, d.response)
	if n, k := len(d.a.Joins), len(d.b.Joins); n != k {
		d.say("join tokens: %d kept, were %d", k, n)
	}
	if n, k := d.b.Granted-d.a.Granted, d.b.Returned-d.a.Returned; n > 0 || k > 0 {
		d.say("%d leases granted, %d returned in between", n, k)
	}
	return d.lines, nil
}

type difference struct {
	a, b  *fsm.Image
	lines []string
}

func (d *difference) say(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// rows calls tell with what is at a key before and after; nil = nothing. What is new comes last.
func rows[R any, K comparable](_ *difference, a, b []R, key func(*R) K, tell func(was, is *R)) {
	after := make(map[K]*R, len(b))
	for i := range b {
		after[key(&b[i])] = &b[i]
	}
	before := make(map[K]bool, len(a))
	for i := range a {
		k := key(&a[i])
		before[k] = true
		tell(&a[i], after[k])
	}
	for i := range b {
		if !before[key(&b[i])] {
			tell(nil, &b[i])
		}
	}
}

func (d *difference) config() {
	switch {
	case d.a.Revision != d.b.Revision:
		d.say("configuration: revision %d became %d", d.a.Revision, d.b.Revision)
	case !bytes.Equal(d.a.Document, d.b.Document):
		d.say("configuration: another document under revision %d", d.b.Revision)
	}
	if was, is := d.a.Config.Pool, d.b.Config.Pool; was != is {
		d.say("configuration: the pool's bounds changed: max_queue %d → %d, queue_timeout_ms %d → %d", was.MaxQueue, is.MaxQueue,
			was.QueueTimeout/fsm.Millisecond, is.QueueTimeout/fsm.Millisecond)
	}
}

func (d *difference) session(was, is *fsm.SessionRow) {
	switch {
	case was == nil:
		d.say("session %d of edge %s was opened", is.ID, is.Edge)
	case is == nil:
		d.say("session %d of edge %s ended", was.ID, was.Edge)
	case was.GraceUntil != 0 && is.GraceUntil == 0:
		d.say("session %d of edge %s: its startup grace is over", is.ID, is.Edge)
	}
}

func (d *difference) node(was, is *fsm.NodeRow) {
	if was == nil || is == nil || was.Removed != is.Removed {
		if is == nil || is.Removed {
			d.say("node %s was removed from the configuration", was.ID)
		} else {
			d.say("node %s is new in the configuration", is.ID)
		}
	}
	if was == nil {
		was = &fsm.NodeRow{ID: is.ID}
	}
	if is == nil {
		return
	}
	if was.Token != is.Token {
		d.say("node %s: it has got another token by joining, or lost the one that it had", is.ID)
	}
	if was.Draining != is.Draining {
		d.say("node %s: draining %s", is.ID, onOff(is.Draining))
	}
	rows(d, was.Links, is.Links, func(l *fsm.LinkRow) fsm.Generation { return l.Generation }, func(a, b *fsm.LinkRow) {
		switch {
		case a == nil:
			d.say("node %s: link of generation %d to edge %s is new, %s", is.ID, b.Generation, b.Edge, b.State)
		case b == nil:
			d.say("node %s: link of generation %d to edge %s is gone", is.ID, a.Generation, a.Edge)
		case a.State != b.State:
			d.say("node %s: link of generation %d was %s, is %s", is.ID, b.Generation, a.State, b.State)
		}
	})
}

func (d *difference) provider(was, is *fsm.ProviderRow) {
	switch {
	case was == nil:
		d.say("provider %s is new: node %s, capacity %d", is.Config.ID, is.Config.Node, is.Config.Capacity)
		return
	case is == nil:
		d.say("provider %s is gone", was.Config.ID)
		return
	}
	id := is.Config.ID
	if was.Removed != is.Removed {
		d.say("provider %s: removed from the configuration, leases still name it", id)
	}
	if was.Health != is.Health {
		d.say("provider %s: health was %s, is %s %s", id, was.Health, is.Health, is.Cause)
	}
	if was.Draining != is.Draining {
		d.say("provider %s: draining %s", id, onOff(is.Draining))
	}
	if was.Config != is.Config {
		d.say("provider %s: configuration changed: %s", id, strings.Join(changed(&was.Config, &is.Config), ", "))
	}
	if a, b := was.Granted-was.Returned, is.Granted-is.Returned; a != b {
		d.say("provider %s: in flight %d → %d", id, a, b)
	}
}

// changed names what is different between two configurations of a provider, and nothing else.
func changed(was, is *fsm.ProviderConfig) []string {
	var words []string
	field := func(name string, a, b any) {
		if a != b {
			words = append(words, fmt.Sprintf("%s %v → %v", name, a, b))
		}
	}
	field("node", was.Node, is.Node)
	field("capacity", was.Capacity, is.Capacity)
	field("long capacity", was.LongCapacity, is.LongCapacity)
	field("context window", was.ContextWindow, is.ContextWindow)
	field("priority", was.Priority, is.Priority)
	field("enabled", was.Enabled, is.Enabled)
	if was.Can != is.Can {
		words = append(words, "what it can do")
	}
	return words
}

func (d *difference) request(was, is *fsm.RequestRow) {
	switch {
	case was == nil:
		d.say("request %s came: %s", is.ID, where(is))
	case is == nil:
		d.say("request %s ended; it was %s", was.ID, where(was))
	case was.State != is.State || was.Lease != is.Lease || was.Session != is.Session:
		d.say("request %s was %s, is %s", is.ID, where(was), where(is))
	case !reflect.DeepEqual(was.Excluded, is.Excluded):
		d.say("request %s fell over from %v", is.ID, is.Excluded)
	}
}

// where says where a request is.
func where(r *fsm.RequestRow) string {
	if r.Lease == 0 {
		return fmt.Sprintf("%s at place %d for model %s", r.State, r.Enqueue, r.Model)
	}
	return fmt.Sprintf("%s: lease %d of %s, generation %d", r.State, r.Lease, r.Provider, r.Generation)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
