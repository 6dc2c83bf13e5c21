package fsm

import (
	"crypto/sha256"
	"encoding/binary"
)

// Digest is a SHA-256 over all rows of the state in key order. Replicas at the same index have the same digest; a
// restored machine has that of the one it came from. It costs time in proportion to the state.
func (m *Machine) Digest() [32]byte { return m.Image().Digest() }

// Digest hashes the rows: each number as a varint, each string with its length before it, each list with its count.
func (img *Image) Digest() [32]byte {
	w := &rowWriter{}
	w.nums(img.Index, img.Term, uint64(img.Now), uint64(img.Wall), uint64(img.Revision))
	w.str(string(img.Document))
	w.config(&img.Config)
	w.nums(uint64(img.LastSession), uint64(img.NextLease), uint64(img.NextEnqueue), img.Granted, img.Returned)
	w.num(uint64(len(img.Offers)))
	for _, r := range img.Offers {
		w.str(string(r.Edge))
		w.str(r.Offer)
	}
	w.num(uint64(len(img.Sessions)))
	for i := range img.Sessions {
		w.session(&img.Sessions[i])
	}
	w.num(uint64(len(img.Nodes)))
	for i := range img.Nodes {
		w.node(&img.Nodes[i])
	}
	w.num(uint64(len(img.Providers)))
	for i := range img.Providers {
		w.provider(&img.Providers[i])
	}
	w.num(uint64(len(img.Models)))
	for _, r := range img.Models {
		w.str(string(r.ID))
		w.str(string(r.Cursor))
	}
	w.num(uint64(len(img.Requests)))
	for i := range img.Requests {
		w.request(&img.Requests[i])
	}
	w.later(img)
	return sha256.Sum256(w.buf)
}

// later appends what the first release did not have, each part with its number before it and only if it says something:
// so the digest of a state without it is the one that the first release had.
func (w *rowWriter) later(img *Image) {
	if img.Level > 0 {
		w.nums(1, uint64(img.Level))
	}
	if img.Checked > 0 {
		w.nums(2, img.Checked)
	}
	if len(img.Edges) > 0 {
		w.nums(3, uint64(len(img.Edges)))
		for _, r := range img.Edges {
			w.str(string(r.Edge))
			w.str(r.Address)
		}
	}
	w.tokens(img)
	w.direct(img)
	w.principals(img)
	w.usage(img)
	w.responses(img)
	w.apart(img)
}

func (w *rowWriter) tokens(img *Image) {
	for i := range img.Nodes {
		if r := &img.Nodes[i]; r.Token != (TokenHash{}) {
			w.num(4)
			w.str(string(r.ID))
			w.buf = append(w.buf, r.Token[:]...)
		}
	}
	for i := range img.Joins {
		r := &img.Joins[i]
		w.nums(5, uint64(r.Until), uint64(r.Forget))
		w.str(string(r.Node))
		w.buf = append(append(w.buf, r.Token[:]...), r.NodeToken[:]...)
	}
}

func (w *rowWriter) direct(img *Image) {
	for i := range img.Requests {
		if r := &img.Requests[i]; r.Direct {
			w.num(6)
			w.str(string(r.ID))
		}
	}
}

func (w *rowWriter) principals(img *Image) {
	if img.Config.Pool.Fair {
		w.nums(7, img.LastTurn)
	}
	for i := range img.Config.Principals {
		p := &img.Config.Principals[i]
		w.nums(8, uint64(p.MaxInFlight), uint64(p.MaxQueued), uint64(len(p.Models)))
		w.str(string(p.ID))
		for _, id := range p.Models {
			w.str(string(id))
		}
	}
	for _, r := range img.Principals {
		w.nums(9, r.Turn)
		w.str(string(r.ID))
	}
	for i := range img.Requests {
		if r := &img.Requests[i]; r.Principal != "" || r.Token != "" || r.Metered {
			w.num(10)
			w.str(string(r.ID))
			w.str(string(r.Principal))
			w.str(r.Token)
			w.flag(r.Metered)
		}
	}
}

func (w *rowWriter) usage(img *Image) {
	if img.Metered > 0 {
		w.nums(11, img.Metered)
	}
	for i := range img.Usage {
		r := &img.Usage[i]
		w.nums(12, uint64(r.Day), r.Requests, r.Aborted, r.Untold, r.Prompt, r.Completion, r.Cached, r.Reasoning)
		w.str(string(r.Principal))
		w.str(r.Token)
		w.str(string(r.Model))
		w.str(string(r.Provider))
	}
}

func (w *rowWriter) responses(img *Image) {
	if p := &img.Config.Pool; p.ResponsesBytes > 0 || p.ResponsesRetention > 0 {
		w.nums(13, uint64(p.ResponsesBytes), uint64(p.ResponsesRetention))
	}
	if img.LastOrder > 0 {
		w.nums(14, img.LastOrder)
	}
	for i := range img.Responses {
		r := &img.Responses[i]
		w.nums(15, uint64(r.Status), uint64(r.Cause), uint64(r.Attempt), uint64(r.Lost), uint64(r.Events), uint64(r.Bytes), uint64(r.Object),
			uint64(r.Since), uint64(r.Wall), r.Order)
		w.str(string(r.ID))
		w.str(string(r.Principal))
		w.flag(r.Background)
	}
}

func (w *rowWriter) apart(img *Image) {
	for i := range img.Nodes {
		for _, l := range img.Nodes[i].Links {
			if l.Apart {
				w.nums(16, uint64(l.Generation))
				w.str(string(img.Nodes[i].ID))
			}
		}
	}
}

type rowWriter struct{ buf []byte }

func (w *rowWriter) num(n uint64) { w.buf = binary.AppendUvarint(w.buf, n) }

func (w *rowWriter) nums(ns ...uint64) {
	for _, n := range ns {
		w.num(n)
	}
}

func (w *rowWriter) str(s string) {
	w.num(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *rowWriter) flag(b bool) {
	if b {
		w.num(1)
	} else {
		w.num(0)
	}
}

func (w *rowWriter) config(c *Config) {
	w.nums(uint64(c.Pool.MaxQueue), uint64(c.Pool.QueueTimeout), uint64(c.Pool.StartupGrace),
		uint64(c.Pool.ReattachWindow), uint64(c.Pool.FenceTimeout))
	w.num(uint64(len(c.Models)))
	for _, mo := range c.Models {
		w.str(string(mo.ID))
		w.num(uint64(len(mo.Candidates)))
		for _, can := range mo.Candidates {
			w.str(string(can.Provider))
			w.str(can.Served)
		}
	}
	w.num(uint64(len(c.Nodes)))
	for _, id := range c.Nodes {
		w.str(string(id))
	}
	w.num(uint64(len(c.Providers)))
	for i := range c.Providers {
		w.providerConfig(&c.Providers[i])
	}
}

func (w *rowWriter) providerConfig(p *ProviderConfig) {
	w.str(string(p.ID))
	w.str(string(p.Node))
	w.nums(uint64(p.Capacity), uint64(p.LongCapacity), uint64(p.ContextWindow), uint64(p.Priority), uint64(p.Can))
	w.flag(p.Enabled)
}

func (w *rowWriter) session(r *SessionRow) {
	w.nums(uint64(r.ID), r.Nonce, uint64(r.OpenedAt), uint64(r.OpenedWall), uint64(r.GraceUntil), r.NextSeq, r.AckBelow)
	w.str(string(r.Edge))
	w.num(uint64(len(r.Batches)))
	for _, b := range r.Batches {
		w.nums(b.Seq, b.Sum, uint64(len(b.Outcomes)))
		for i := range b.Outcomes {
			w.outcome(&b.Outcomes[i])
		}
	}
}

func (w *rowWriter) outcome(o *Outcome) {
	w.nums(uint64(o.Code), uint64(o.Refusal), uint64(o.Position), uint64(o.Enqueue), uint64(o.Session),
		uint64(o.Generation), uint64(o.Revision), uint64(o.Count), uint64(len(o.Counted)))
	for _, id := range o.Counted {
		w.num(uint64(id))
	}
	g := &o.Grant
	w.nums(uint64(g.Lease), uint64(g.Class), uint64(g.Generation))
	w.str(string(g.Request))
	w.str(string(g.Model))
	w.str(string(g.Provider))
	w.str(string(g.Node))
	w.str(g.Served)
}

func (w *rowWriter) node(r *NodeRow) {
	w.str(string(r.ID))
	w.nums(uint64(r.Generation), r.Instance)
	w.flag(r.Draining)
	w.flag(r.Removed)
	w.num(uint64(len(r.Links)))
	for _, l := range r.Links {
		w.nums(uint64(l.Generation), uint64(l.Session), uint64(l.State), uint64(l.FenceUntil))
		w.str(string(l.Edge))
	}
}

func (w *rowWriter) provider(r *ProviderRow) {
	w.providerConfig(&r.Config)
	w.flag(r.Removed)
	w.flag(r.Draining)
	w.num(uint64(r.Health))
	w.str(r.Cause)
	w.nums(r.Granted, r.Returned)
}

func (w *rowWriter) request(r *RequestRow) {
	w.str(string(r.ID))
	w.buf = append(w.buf, r.Fingerprint[:]...)
	w.str(string(r.Model))
	w.nums(uint64(r.Class), uint64(r.InputTokens), uint64(r.Needs), uint64(r.MaxWait), uint64(r.Session), uint64(r.State),
		uint64(r.Enqueue), uint64(r.EnqueuedAt), uint64(r.EnqueuedWall), r.EnqueuedIndex, uint64(r.DetachedUntil))
	w.str(string(r.Edge))
	w.num(uint64(len(r.Excluded)))
	for _, p := range r.Excluded {
		w.str(string(p))
	}
	w.nums(uint64(r.Lease), uint64(r.Generation), uint64(r.GrantedAt), uint64(r.GrantedWall), r.GrantedIndex)
	w.str(string(r.Provider))
	w.str(string(r.Node))
	w.str(r.Served)
}
