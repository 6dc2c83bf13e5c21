package storage

import (
	"errors"

	"iop/fsm"
	"iop/proto/recordpb"
)

// eachRow calls fn for the rows of an image in the order of the format.
func eachRow(img *fsm.Image, fn func(*recordpb.Row)) {
	if len(img.Document) > 0 {
		fn(&recordpb.Row{Kind: &recordpb.Row_Document{Document: img.Document}})
	}
	fn(&recordpb.Row{Kind: &recordpb.Row_Config{Config: configRecord(&img.Config)}})
	for _, o := range img.Offers {
		fn(&recordpb.Row{Kind: &recordpb.Row_Offer{Offer: &recordpb.OfferRow{Edge: []byte(o.Edge), Offer: []byte(o.Offer)}}})
	}
	for i := range img.Sessions {
		s := &img.Sessions[i]
		fn(&recordpb.Row{Kind: &recordpb.Row_Session{Session: sessionRecord(s)}})
		for j := range s.Batches {
			fn(&recordpb.Row{Kind: &recordpb.Row_Batch{Batch: batchRecord(&s.Batches[j])}})
		}
	}
	for i := range img.Nodes {
		fn(&recordpb.Row{Kind: &recordpb.Row_Node{Node: nodeRecord(&img.Nodes[i])}})
	}
	for i := range img.Providers {
		fn(&recordpb.Row{Kind: &recordpb.Row_Provider{Provider: providerRowRecord(&img.Providers[i])}})
	}
	for _, m := range img.Models {
		fn(&recordpb.Row{Kind: &recordpb.Row_Model{Model: &recordpb.ModelRow{Id: []byte(m.ID), Cursor: []byte(m.Cursor)}}})
	}
	for i := range img.Requests {
		fn(&recordpb.Row{Kind: &recordpb.Row_Request{Request: requestRecord(&img.Requests[i])}})
	}
	for _, e := range img.Edges {
		fn(&recordpb.Row{Kind: &recordpb.Row_Edge{Edge: &recordpb.EdgeRow{Edge: []byte(e.Edge), Address: []byte(e.Address)}}})
	}
	for i := range img.Joins {
		fn(&recordpb.Row{Kind: &recordpb.Row_Join{Join: joinRecord(&img.Joins[i])}})
	}
	for _, p := range img.Principals {
		fn(&recordpb.Row{Kind: &recordpb.Row_Principal{Principal: &recordpb.PrincipalRow{Id: []byte(p.ID), Turn: p.Turn}}})
	}
	for i := range img.Usage {
		fn(&recordpb.Row{Kind: &recordpb.Row_Usage{Usage: usageRecord(&img.Usage[i])}})
	}
	for i := range img.Responses {
		fn(&recordpb.Row{Kind: &recordpb.Row_Response{Response: responseRecord(&img.Responses[i])}})
	}
}

// addRow puts a row into an image.
func addRow(img *fsm.Image, row *recordpb.Row) error {
	var w narrow
	var err error
	switch k := row.GetKind().(type) {
	case *recordpb.Row_Document:
		img.Document = k.Document
	case *recordpb.Row_Config:
		img.Config, err = configOf(k.Config)
	case *recordpb.Row_Offer:
		img.Offers = append(img.Offers, fsm.OfferRow{Edge: fsm.EdgeID(k.Offer.GetEdge()), Offer: string(k.Offer.GetOffer())})
	case *recordpb.Row_Session:
		img.Sessions = append(img.Sessions, sessionOf(k.Session))
	case *recordpb.Row_Batch:
		if len(img.Sessions) == 0 {
			return errors.New("a batch without a session")
		}
		s := &img.Sessions[len(img.Sessions)-1]
		s.Batches = append(s.Batches, w.batch(k.Batch))
	case *recordpb.Row_Node:
		img.Nodes = append(img.Nodes, w.node(k.Node))
	case *recordpb.Row_Provider:
		img.Providers = append(img.Providers, w.providerRow(k.Provider))
	case *recordpb.Row_Model:
		img.Models = append(img.Models, fsm.ModelRow{ID: fsm.ModelID(k.Model.GetId()), Cursor: fsm.ProviderID(k.Model.GetCursor())})
	case *recordpb.Row_Request:
		img.Requests = append(img.Requests, w.request(k.Request))
	case *recordpb.Row_Edge:
		img.Edges = append(img.Edges, fsm.EdgeRow{Edge: fsm.EdgeID(k.Edge.GetEdge()), Address: string(k.Edge.GetAddress())})
	case *recordpb.Row_Join:
		img.Joins = append(img.Joins, w.join(k.Join))
	case *recordpb.Row_Principal:
		img.Principals = append(img.Principals, fsm.PrincipalRow{ID: fsm.PrincipalID(k.Principal.GetId()), Turn: k.Principal.GetTurn()})
	case *recordpb.Row_Usage:
		img.Usage = append(img.Usage, usageOf(k.Usage))
	case *recordpb.Row_Response:
		img.Responses = append(img.Responses, w.response(k.Response))
	default:
		return errors.New("row without a kind")
	}
	return errors.Join(err, w.err)
}

func sessionRecord(s *fsm.SessionRow) *recordpb.SessionRow {
	return &recordpb.SessionRow{
		Id: uint64(s.ID), Edge: []byte(s.Edge), Nonce: s.Nonce, OpenedAt: int64(s.OpenedAt), OpenedWall: s.OpenedWall,
		GraceUntil: int64(s.GraceUntil), NextSeq: s.NextSeq, AckBelow: s.AckBelow,
	}
}

func sessionOf(m *recordpb.SessionRow) fsm.SessionRow {
	return fsm.SessionRow{
		ID: fsm.SessionID(m.GetId()), Edge: fsm.EdgeID(m.GetEdge()), Nonce: m.GetNonce(),
		OpenedAt: fsm.Time(m.GetOpenedAt()), OpenedWall: m.GetOpenedWall(), GraceUntil: fsm.Time(m.GetGraceUntil()),
		NextSeq: m.GetNextSeq(), AckBelow: m.GetAckBelow(),
	}
}

func batchRecord(b *fsm.BatchRow) *recordpb.BatchRow {
	m := &recordpb.BatchRow{Seq: b.Seq, Sum: b.Sum}
	for i := range b.Outcomes {
		m.Outcomes = append(m.Outcomes, outcomeRecord(&b.Outcomes[i]))
	}
	return m
}

func (w *narrow) batch(m *recordpb.BatchRow) fsm.BatchRow {
	b := fsm.BatchRow{Seq: m.GetSeq(), Sum: m.GetSum()}
	for _, o := range m.GetOutcomes() {
		b.Outcomes = append(b.Outcomes, w.outcome(o))
	}
	return b
}

func outcomeRecord(o *fsm.Outcome) *recordpb.Outcome {
	m := &recordpb.Outcome{
		Code: uint32(o.Code), Refusal: uint32(o.Refusal), Position: int64(o.Position), Enqueue: uint64(o.Enqueue),
		Session: uint64(o.Session), Generation: uint64(o.Generation), Revision: uint64(o.Revision), Count: int64(o.Count),
	}
	if g := &o.Grant; *g != (fsm.Grant{}) {
		m.Grant = &recordpb.Grant{
			Lease: uint64(g.Lease), Request: []byte(g.Request), Model: []byte(g.Model), Class: uint32(g.Class),
			Provider: []byte(g.Provider), Node: []byte(g.Node), Generation: uint64(g.Generation), Served: []byte(g.Served),
		}
	}
	for _, l := range o.Counted {
		m.Counted = append(m.Counted, uint64(l))
	}
	return m
}

func (w *narrow) outcome(m *recordpb.Outcome) fsm.Outcome {
	o := fsm.Outcome{
		Code: fsm.Code(w.byte(m.GetCode())), Refusal: fsm.Refusal(w.byte(m.GetRefusal())),
		Position: w.int(m.GetPosition()), Enqueue: fsm.Enqueue(m.GetEnqueue()), Session: fsm.SessionID(m.GetSession()),
		Generation: fsm.Generation(m.GetGeneration()), Revision: fsm.Revision(m.GetRevision()), Count: w.int(m.GetCount()),
	}
	if g := m.GetGrant(); g != nil {
		o.Grant = fsm.Grant{
			Lease: fsm.LeaseID(g.GetLease()), Request: fsm.RequestID(g.GetRequest()), Model: fsm.ModelID(g.GetModel()),
			Class: fsm.Class(w.byte(g.GetClass())), Provider: fsm.ProviderID(g.GetProvider()),
			Node: fsm.NodeID(g.GetNode()), Generation: fsm.Generation(g.GetGeneration()), Served: string(g.GetServed()),
		}
	}
	for _, l := range m.GetCounted() {
		o.Counted = append(o.Counted, fsm.LeaseID(l))
	}
	return o
}

func nodeRecord(n *fsm.NodeRow) *recordpb.NodeRow {
	m := &recordpb.NodeRow{
		Id: []byte(n.ID), Generation: uint64(n.Generation), Instance: n.Instance, Draining: n.Draining, Removed: n.Removed,
	}
	m.Token = hashRecord(n.Token)
	for _, l := range n.Links {
		m.Links = append(m.Links, &recordpb.NodeRow_Link{
			Generation: uint64(l.Generation), Edge: []byte(l.Edge), Session: uint64(l.Session), State: uint32(l.State),
			FenceUntil: int64(l.FenceUntil), Apart: l.Apart,
		})
	}
	return m
}

func (w *narrow) node(m *recordpb.NodeRow) fsm.NodeRow {
	n := fsm.NodeRow{
		ID: fsm.NodeID(m.GetId()), Generation: fsm.Generation(m.GetGeneration()), Instance: m.GetInstance(),
		Draining: m.GetDraining(), Removed: m.GetRemoved(),
	}
	n.Token = w.hash(m.GetToken())
	for _, l := range m.GetLinks() {
		n.Links = append(n.Links, fsm.LinkRow{
			Generation: fsm.Generation(l.GetGeneration()), Edge: fsm.EdgeID(l.GetEdge()),
			Session: fsm.SessionID(l.GetSession()), State: fsm.LinkState(w.byte(l.GetState())),
			FenceUntil: fsm.Time(l.GetFenceUntil()), Apart: l.GetApart(),
		})
	}
	return n
}

func providerRowRecord(p *fsm.ProviderRow) *recordpb.ProviderRow {
	return &recordpb.ProviderRow{
		Config: providerRecord(&p.Config), Removed: p.Removed, Draining: p.Draining, Health: uint32(p.Health),
		Cause: []byte(p.Cause), Granted: p.Granted, Returned: p.Returned,
	}
}

func (w *narrow) providerRow(m *recordpb.ProviderRow) fsm.ProviderRow {
	return fsm.ProviderRow{
		Config: w.provider(m.GetConfig()), Removed: m.GetRemoved(), Draining: m.GetDraining(),
		Health: fsm.Health(w.byte(m.GetHealth())), Cause: string(m.GetCause()),
		Granted: m.GetGranted(), Returned: m.GetReturned(),
	}
}

func requestRecord(r *fsm.RequestRow) *recordpb.RequestRow {
	m := &recordpb.RequestRow{
		Id: []byte(r.ID), Model: []byte(r.Model), Class: uint32(r.Class), InputTokens: r.InputTokens,
		Needs: uint32(r.Needs), MaxWait: int64(r.MaxWait), Session: uint64(r.Session), State: uint32(r.State),
		Enqueue: uint64(r.Enqueue), EnqueuedAt: int64(r.EnqueuedAt), EnqueuedWall: r.EnqueuedWall,
		EnqueuedIndex: r.EnqueuedIndex, DetachedUntil: int64(r.DetachedUntil), Lease: uint64(r.Lease),
		Provider: []byte(r.Provider), Served: []byte(r.Served), Generation: uint64(r.Generation),
		GrantedAt: int64(r.GrantedAt), GrantedWall: r.GrantedWall, GrantedIndex: r.GrantedIndex,
		Edge: []byte(r.Edge), Node: []byte(r.Node), Direct: r.Direct,
		Principal: []byte(r.Principal), Token: []byte(r.Token), Metered: r.Metered,
	}
	if r.Fingerprint != (fsm.Fingerprint{}) {
		m.Fingerprint = r.Fingerprint[:]
	}
	for _, x := range r.Excluded {
		m.Excluded = append(m.Excluded, []byte(x))
	}
	return m
}

func (w *narrow) request(m *recordpb.RequestRow) fsm.RequestRow {
	r := fsm.RequestRow{
		ID: fsm.RequestID(m.GetId()), Model: fsm.ModelID(m.GetModel()), Class: fsm.Class(w.byte(m.GetClass())),
		InputTokens: m.GetInputTokens(), Needs: fsm.Needs(m.GetNeeds()), MaxWait: fsm.Time(m.GetMaxWait()),
		Session: fsm.SessionID(m.GetSession()), State: fsm.RequestState(w.byte(m.GetState())),
		Enqueue: fsm.Enqueue(m.GetEnqueue()), EnqueuedAt: fsm.Time(m.GetEnqueuedAt()), EnqueuedWall: m.GetEnqueuedWall(),
		EnqueuedIndex: m.GetEnqueuedIndex(), DetachedUntil: fsm.Time(m.GetDetachedUntil()),
		Lease: fsm.LeaseID(m.GetLease()), Provider: fsm.ProviderID(m.GetProvider()), Served: string(m.GetServed()),
		Generation: fsm.Generation(m.GetGeneration()), GrantedAt: fsm.Time(m.GetGrantedAt()),
		GrantedWall: m.GetGrantedWall(), GrantedIndex: m.GetGrantedIndex(),
		Edge: fsm.EdgeID(m.GetEdge()), Node: fsm.NodeID(m.GetNode()), Direct: m.GetDirect(),
		Principal: fsm.PrincipalID(m.GetPrincipal()), Token: string(m.GetToken()), Metered: m.GetMetered(),
	}
	if fp := m.GetFingerprint(); len(fp) == len(r.Fingerprint) {
		copy(r.Fingerprint[:], fp)
	} else if len(fp) > 0 {
		w.err = errors.New("fingerprint is not 16 bytes")
	}
	for _, x := range m.GetExcluded() {
		r.Excluded = append(r.Excluded, fsm.ProviderID(x))
	}
	return r
}

func joinRecord(j *fsm.JoinRow) *recordpb.JoinRow {
	return &recordpb.JoinRow{
		Token: hashRecord(j.Token), Node: []byte(j.Node), Until: int64(j.Until), Forget: int64(j.Forget),
		NodeToken: hashRecord(j.NodeToken),
	}
}

func (w *narrow) join(m *recordpb.JoinRow) fsm.JoinRow {
	return fsm.JoinRow{
		Token: w.hash(m.GetToken()), Node: fsm.NodeID(m.GetNode()), Until: fsm.Time(m.GetUntil()),
		Forget: fsm.Time(m.GetForget()), NodeToken: w.hash(m.GetNodeToken()),
	}
}

func usageRecord(u *fsm.UsageRow) *recordpb.UsageRow {
	return &recordpb.UsageRow{
		Day: u.Day, Principal: []byte(u.Principal), Token: []byte(u.Token), Model: []byte(u.Model), Provider: []byte(u.Provider),
		Requests: u.Requests, Aborted: u.Aborted, Untold: u.Untold,
		Prompt: u.Prompt, Completion: u.Completion, Cached: u.Cached, Reasoning: u.Reasoning,
	}
}

func usageOf(m *recordpb.UsageRow) fsm.UsageRow {
	return fsm.UsageRow{
		UsageKey: fsm.UsageKey{
			Day: m.GetDay(), Principal: fsm.PrincipalID(m.GetPrincipal()), Token: string(m.GetToken()),
			Model: fsm.ModelID(m.GetModel()), Provider: fsm.ProviderID(m.GetProvider()),
		},
		Requests: m.GetRequests(), Aborted: m.GetAborted(), Untold: m.GetUntold(),
		Prompt: m.GetPrompt(), Completion: m.GetCompletion(), Cached: m.GetCached(), Reasoning: m.GetReasoning(),
	}
}

func hashRecord(h fsm.TokenHash) []byte {
	if h == (fsm.TokenHash{}) {
		return nil
	}
	return h[:]
}

func (w *narrow) hash(b []byte) (h fsm.TokenHash) {
	if len(b) > 0 && len(b) != len(h) {
		w.err = errors.New("hash of a token is not 32 bytes")
	}
	copy(h[:], b)
	return h
}
