package fsm_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "iop/fsm"
)

// pair drives the machine and the naive model side by side.
type pair struct {
	m       *Machine
	n       *naive
	entries []*Entry // all that was applied; nil if keep is false
	keep    bool
	alone   bool // the naive model knows nothing of stored responses
}

func newPair(keep bool) *pair { return &pair{m: New(), n: newNaive(), keep: keep} }

// step applies an entry to both and compares what they say. It returns the machine's word.
func (p *pair) step(e *Entry) (Result, error) {
	if p.keep {
		p.entries = append(p.entries, e)
	}
	got := p.m.Apply(e)
	if err := p.m.Check(); err != nil {
		return got, fmt.Errorf("entry %d: %w", e.Index, err)
	}
	if p.alone {
		return got, nil
	}
	want := p.n.apply(e)
	if !sameOutcomes(got.Outcomes, want.Outcomes) {
		return got, fmt.Errorf("entry %d: outcomes (-naive +machine):\n%s", e.Index,
			gocmp.Diff(want.Outcomes, got.Outcomes, cmpopts.EquateEmpty()))
	}
	if !slices.Equal(got.Checks, want.Checks) {
		return got, fmt.Errorf("entry %d: digest checks %v, naive %v", e.Index, got.Checks, want.Checks)
	}
	if diff := diffEffects(want.Effects, got.Effects); diff != "" {
		return got, fmt.Errorf("entry %d: effects (-naive +machine):\n%s", e.Index, diff)
	}
	return got, nil
}

func sameOutcomes(a, b [][]Outcome) bool {
	return slices.EqualFunc(a, b, func(x, y []Outcome) bool {
		return slices.EqualFunc(x, y, func(o, q Outcome) bool {
			counted := slices.Equal(o.Counted, q.Counted)
			o.Counted, q.Counted = nil, nil
			return counted && reflect.DeepEqual(o, q)
		})
	})
}

// bare keeps of an effect what its kind documents.
func bare(e Effect) Effect {
	b := Effect{Kind: e.Kind, Session: e.Session}
	switch e.Kind {
	case EffectGranted:
		b.Grant = e.Grant
	case EffectEnded:
		b.Request, b.Refusal = e.Request, e.Refusal
	case EffectReturned:
		b.Grant, b.Reason = e.Grant, e.Reason
	case EffectLinkFenced:
		b.Node, b.Generation, b.Reason = e.Node, e.Generation, e.Reason
	case EffectSessionEnded:
		b.Edge, b.Reason = e.Edge, e.Reason
	case EffectDrained:
		b.Node, b.Provider, b.On = e.Node, e.Provider, e.On
	case EffectConfig:
		b.Revision = e.Revision
	}
	return b
}

// diffEffects compares grants in their order, which the semantics define, and the others as a set.
func diffEffects(want, got []Effect) string {
	split := func(es []Effect) (grants, others []Effect) {
		for _, e := range es {
			if e = bare(e); e.Kind == EffectGranted {
				grants = append(grants, e)
			} else {
				others = append(others, e)
			}
		}
		slices.SortStableFunc(others, compareEffects)
		return grants, others
	}
	wantGrants, wantOthers := split(want)
	gotGrants, gotOthers := split(got)
	if slices.Equal(wantGrants, gotGrants) && slices.Equal(wantOthers, gotOthers) {
		return ""
	}
	return gocmp.Diff(wantGrants, gotGrants) + gocmp.Diff(wantOthers, gotOthers)
}

func compareEffects(a, b Effect) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Request, b.Request),
		cmp.Compare(a.Grant.Lease, b.Grant.Lease), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Generation, b.Generation),
	)
}

// compare compares everything that can be read of the two.
func (p *pair) compare() error {
	if p.alone {
		return nil
	}
	if want, got := p.n.image(), p.m.Image(); want.Digest() != got.Digest() {
		return fmt.Errorf("image (-naive +machine):\n%s", gocmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
	if err := same("snapshot", p.n.snapshot(), p.m.Snapshot()); err != nil {
		return err
	}
	if err := same("waiters", p.n.waiterViews(), withoutCandidates(p.m.Waiters())); err != nil {
		return err
	}
	if err := same("leases", p.n.leaseViews(), withoutCandidates(p.m.Leases())); err != nil {
		return err
	}
	wantAt, wantAny := p.n.nextDeadline()
	if at, some := p.m.NextDeadline(); at != wantAt || some != wantAny {
		return fmt.Errorf("next deadline: naive %d %v, machine %d %v", wantAt, wantAny, at, some)
	}
	if want, got := len(p.n.waiters()), p.m.Pending(); want != got {
		return fmt.Errorf("pending: naive %d, machine %d", want, got)
	}
	return p.compareCandidates()
}

// same compares what is printed, in which an empty list is one that is not there.
func same[T any](what string, want, got T) error {
	if fmt.Sprintf("%+v", want) == fmt.Sprintf("%+v", got) {
		return nil
	}
	return fmt.Errorf("%s (-naive +machine):\n%s", what, gocmp.Diff(want, got, cmpopts.EquateEmpty()))
}

func withoutCandidates(vs []RequestView) []RequestView {
	for i := range vs {
		vs[i].Candidates = nil
	}
	return vs
}

// compareCandidates: what people are told of a waiter's candidates agrees with the naive standing.
func (p *pair) compareCandidates() error {
	for _, v := range p.m.Waiters() {
		r := p.n.request(v.ID)
		if r.State == StateDetached {
			continue
		}
		fit, _ := p.n.candidates(r)
		for _, c := range v.Candidates {
			q := p.n.provider(c.Provider)
			dispatch := slices.Contains(fit, q) && p.n.stand(q, r) == dispatchable
			if c.Dispatchable != dispatch || (c.Reason == "") != dispatch {
				return fmt.Errorf("waiter %s: candidate %s: naive dispatchable %v, machine %v (%s)",
					v.ID, c.Provider, dispatch, c.Dispatchable, c.Reason)
			}
		}
	}
	return nil
}

// zero lets everything end and tells what then is still held.
func (p *pair) zero() error {
	if p.alone {
		return nil
	}
	e := &Entry{Index: p.n.index + 1, Term: p.n.term, Elapsed: p.n.now}
	for _, s := range p.n.sessions {
		e.Batches = append(e.Batches, Batch{Commands: []Command{&EndSession{Edge: s.edge, Session: s.id, Reason: ReasonGoodbye}}})
	}
	if _, err := p.step(e); err != nil {
		return err
	}
	for range 2 * (len(p.n.requests) + len(p.n.nodes) + len(p.n.joins) + 1) {
		at, some := p.n.nextDeadline()
		if !some {
			break
		}
		e := &Entry{Index: p.n.index + 1, Term: p.n.term, Elapsed: max(at, p.n.now)}
		e.Batches = []Batch{{Commands: []Command{&Expire{Term: e.Term}}}}
		if _, err := p.step(e); err != nil {
			return err
		}
	}
	sn := p.m.Snapshot()
	if sn.Granted != sn.Returned || sn.Queue.Pending != 0 || len(p.m.Leases()) != 0 {
		return fmt.Errorf("after the end: granted %d, returned %d, pending %d, leases %d",
			sn.Granted, sn.Returned, sn.Queue.Pending, len(p.m.Leases()))
	}
	for _, v := range sn.Providers {
		if v.Granted != v.Returned {
			return fmt.Errorf("after the end: provider %s granted %d, returned %d", v.ID, v.Granted, v.Returned)
		}
	}
	return p.compare()
}

// restored gives a machine from an image of this one, or fails.
func restored(t testing.TB, m *Machine) *Machine {
	t.Helper()
	r, err := Restore(m.Image())
	if err != nil {
		t.Fatalf("restore image %d: %v", m.Index(), err)
	}
	if m.Digest() != r.Digest() {
		t.Fatalf("restored digest differs at index %d:\n%s", m.Index(), gocmp.Diff(m.Image(), r.Image()))
	}
	return r
}
