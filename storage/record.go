package storage

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"iop/fsm"
)

// Filter chooses commands of the log. Zero values choose all.
type Filter struct {
	From, To     uint64 // indexes, both included
	Since, Until time.Time
	Request      fsm.RequestID
	Lease        fsm.LeaseID
	Node         fsm.NodeID
	Provider     fsm.ProviderID
	Kind         string // one of Kinds
	// Outcomes: the log is replayed too, so that records have outcomes and effects, and the filters by request, lease,
	// node and provider look at them as well.
	Outcomes bool
}

// Record is a command of the log.
type Record struct {
	Index   uint64
	Term    uint64
	Time    time.Time     // wall stamp
	Cluster time.Duration // cluster time
	Session uint64
	Seq     uint64 // of the batch in its session
	Place   int    // of the command in the entry, from 1
	Kind    string
	Command map[string]any // its fields, in snake_case
	Text    string         // for people
	// With Filter.Outcomes:
	Outcome string
	Effects []string // what else it brought about, in words
}

// Log calls fn with the commands that the filter chooses, in order. Without Outcomes it replays nothing, so it reads
// entries that are older than any base, too, and many of them fast.
func (p *Past) Log(ctx context.Context, f Filter, fn func(*Record) error) error {
	from, to := max(f.From, p.info.FirstIndex), p.info.LastIndex
	if f.To != 0 {
		to = min(to, f.To)
	}
	if !f.Since.IsZero() { // a stamp may be out of order by a little: the records themselves are looked at, too
		if i, err := p.IndexAt(ctx, f.Since.Add(-time.Minute)); err == nil {
			from = max(from, i)
		}
	}
	if from == 0 || from > to {
		return nil
	}
	if f.Outcomes {
		return p.logReplayed(ctx, &f, from, to, fn)
	}
	var d decoder
	needle := f.needle()
	return p.log.each(from, to, func(r *rawEntry) error {
		if r.index%mentionsEach == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !r.command || !bytes.Contains(r.data, needle) {
			return nil
		}
		e, err := d.entry(r.data)
		if err != nil {
			return p.badEntry(r.index, err)
		}
		e.Index, e.Term = r.index, r.term
		return f.each(e, fn)
	})
}

// needle is what an entry that is chosen must hold somewhere.
func (f *Filter) needle() []byte {
	longest := string(f.Request)
	for _, s := range []string{string(f.Node), string(f.Provider)} {
		if len(s) > len(longest) {
			longest = s
		}
	}
	return []byte(longest)
}

func (f *Filter) each(e *fsm.Entry, fn func(*Record) error) error {
	place := 0
	for i := range e.Batches {
		b := &e.Batches[i]
		for _, c := range b.Commands {
			place++
			if !f.chooses(e, c, nil) {
				continue
			}
			if err := fn(recordOf(e, b, place, c)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Past) logReplayed(ctx context.Context, f *Filter, from, to uint64, fn func(*Record) error) error {
	w, err := p.travel(from - 1)
	if err != nil {
		return err
	}
	if err := w.to(ctx, from-1, nil); err != nil {
		return err
	}
	place, index := 0, uint64(0)
	return w.to(ctx, to, func(e *fsm.Entry, s fsm.Step) error {
		if e.Index != index {
			place, index = 0, e.Index
		}
		place++
		b := &e.Batches[s.Batch]
		c := b.Commands[s.Command]
		if !f.chooses(e, c, &s) {
			return nil
		}
		r := recordOf(e, b, place, c)
		r.Outcome = outcomeOf(s.Outcome)
		r.Text += ": " + tellOutcome(s.Outcome)
		for i := range s.Effects {
			r.Effects = append(r.Effects, tellEffectOf(&s.Effects[i]))
		}
		return fn(r)
	})
}

func recordOf(e *fsm.Entry, b *fsm.Batch, place int, c fsm.Command) *Record {
	return &Record{
		Index: e.Index, Term: e.Term, Time: wallTime(e.Wall), Cluster: time.Duration(e.Elapsed), Session: uint64(b.Session),
		Seq: b.Seq, Place: place, Kind: kindOf(c), Command: fieldsOf(c), Text: tell(c),
	}
}

// chooses looks at a command, and at what came of it if that is known.
func (f *Filter) chooses(e *fsm.Entry, c fsm.Command, s *fsm.Step) bool {
	at := time.Unix(0, e.Wall)
	if f.Kind != "" && kindOf(c) != f.Kind || !f.Since.IsZero() && at.Before(f.Since) || !f.Until.IsZero() && at.After(f.Until) {
		return false
	}
	if f.Request == "" && f.Lease == 0 && f.Node == "" && f.Provider == "" {
		return true
	}
	node, provider := about(c)
	if matches(f.Node, node) && matches(f.Provider, provider) && matches(f.Request, requestOf(c)) && f.leaseIn(c) {
		return true
	}
	if s == nil {
		return false
	}
	if f.choosesGrant(s.Outcome.Grant.Request, &s.Outcome.Grant) {
		return true
	}
	return slices.ContainsFunc(s.Effects, func(x fsm.Effect) bool { return f.choosesGrant(x.Request, &x.Grant) })
}

func (f *Filter) choosesGrant(r fsm.RequestID, g *fsm.Grant) bool {
	return matches(f.Request, r) && matches(f.Node, g.Node) && matches(f.Provider, g.Provider) && matches(f.Lease, g.Lease)
}

// matches tells whether a filter is not set, or met.
func matches[T comparable](filter, value T) bool {
	var none T
	return filter == none || filter == value
}

func (f *Filter) leaseIn(c fsm.Command) bool {
	if f.Lease == 0 {
		return true
	}
	switch c := c.(type) {
	case *fsm.Release:
		return c.Lease == f.Lease
	case *fsm.Progress:
		return c.Lease == f.Lease
	case *fsm.RegisterNode:
		return slices.Contains(c.Running, f.Lease)
	case *fsm.LinkReport:
		return slices.Contains(c.Running, f.Lease)
	}
	return false
}

func requestOf(c fsm.Command) fsm.RequestID {
	switch c := c.(type) {
	case *fsm.Admit:
		return c.Request
	case *fsm.Cancel:
		return c.Request
	case *fsm.Evict:
		return c.Request
	}
	return fsm.RequestID(responseOf(c))
}

// fieldsOf are the fields of a command. A configuration is told by its size: it is long.
func fieldsOf(c fsm.Command) map[string]any {
	switch c := c.(type) {
	case *fsm.OpenSession:
		return map[string]any{"edge": c.Edge}
	case *fsm.EndSession:
		return map[string]any{"edge": c.Edge, "session": c.Session, "reason": c.Reason.String(), "alive": c.Alive, "apart": c.Apart, "since": c.Since}
	case *fsm.Admit:
		m := map[string]any{"request": c.Request, "model": c.Model, "class": c.Class.String(), "input_tokens": c.InputTokens}
		if c.Fingerprint != (fsm.Fingerprint{}) {
			m["fingerprint"] = fmt.Sprintf("%x", c.Fingerprint)
		}
		if c.Provider != "" {
			m["provider"], m["served"] = c.Provider, c.Served
		}
		if c.MaxWait > 0 {
			m["max_wait_ms"] = int64(c.MaxWait / fsm.Millisecond)
		}
		if c.Place > 0 {
			m["place"] = c.Place
		}
		return m
	case *fsm.Cancel:
		return map[string]any{"request": c.Request}
	case *fsm.Evict:
		return map[string]any{"request": c.Request}
	case *fsm.Release:
		return map[string]any{"lease": c.Lease, "reason": c.Reason.String(), "requeue": c.Requeue, "unsent": c.Unsent}
	case *fsm.Drain:
		return map[string]any{"node": c.Node, "provider": c.Provider, "on": c.On}
	case *fsm.ApplyConfig:
		return map[string]any{"expected": c.Expected, "force": c.Force, "edge": c.Edge, "offer": c.Offer, "document_bytes": len(c.Document)}
	case *fsm.Expire:
		return map[string]any{"term": c.Term}
	case *fsm.AddJoin: // hashes are told by their beginning, which is enough to find them again
		return map[string]any{"node": c.Node, "ttl_ms": int64(c.TTL / fsm.Millisecond), "token_hash": fmt.Sprintf("%x", c.Token[:4])}
	case *fsm.RedeemJoin:
		return map[string]any{"token_hash": fmt.Sprintf("%x", c.Token[:4]), "node_token_hash": fmt.Sprintf("%x", c.NodeToken[:4])}
	case *fsm.Announce:
		return map[string]any{"address": c.Address}
	case *fsm.RaiseLevel:
		return map[string]any{"level": c.Level}
	case *fsm.DigestCheck:
		return map[string]any{"index": c.Index, "digest": fmt.Sprintf("%x", c.Digest)}
	}
	return responseFields(c)
}

func linkFields(c fsm.Command) map[string]any {
	switch c := c.(type) {
	case *fsm.RegisterNode:
		return map[string]any{"node": c.Node, "supersede": c.Supersede, "running": orEmpty(c.Running)}
	case *fsm.NodeReady:
		return map[string]any{"node": c.Node, "generation": c.Generation}
	case *fsm.LinkLost:
		return map[string]any{"node": c.Node, "generation": c.Generation, "reason": c.Reason.String()}
	case *fsm.LinkReport:
		return map[string]any{"node": c.Node, "generation": c.Generation, "running": orEmpty(c.Running)}
	case *fsm.SetHealth:
		return map[string]any{
			"node": c.Node, "generation": c.Generation, "provider": c.Provider, "health": c.Health.String(), "cause": c.Cause,
		}
	}
	return map[string]any{}
}

func orEmpty(list []fsm.LeaseID) []fsm.LeaseID {
	if list == nil {
		return []fsm.LeaseID{}
	}
	return list
}
