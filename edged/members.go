package edged

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"iop/edged/adminapi"
	"iop/edged/peerlink"
	"iop/storage"
)

// members lets operators see and change who is in the cluster: it is admin's Cluster.
type members struct{ d *Daemon }

const (
	memberAsk  = 1500 * time.Millisecond // for each member to say how it stands
	memberWait = 10 * time.Second        // for the leader to make a change, an election in it
	verifyWait = 8 * time.Second         // for all members to reach one index
)

func (m members) Show(ctx context.Context) (*adminapi.Cluster, error) {
	return m.view(m.seats(ctx)), nil
}

func (m members) seats(ctx context.Context) []storage.Seat {
	ctx, cancel := context.WithTimeout(ctx, memberAsk)
	defer cancel()
	return m.d.store.Seats(ctx)
}

func (m members) view(seats []storage.Seat) *adminapi.Cluster {
	own := m.d.standing()
	st := m.d.store.Standing()
	out := &adminapi.Cluster{
		Cluster: st.Cluster, Edge: m.d.self.ID, Leader: own.Leader, AppliedIndex: own.Index, Level: st.Level,
		Members: make([]adminapi.ClusterMember, 0, len(seats)),
	}
	furthest := uint64(0)
	for i := range seats {
		if s := seats[i].Standing; s != nil {
			furthest = max(furthest, s.Applied)
		}
	}
	for i := range seats {
		out.Members = append(out.Members, memberOf(&seats[i], furthest))
	}
	return out
}

func memberOf(s *storage.Seat, furthest uint64) adminapi.ClusterMember {
	out := adminapi.ClusterMember{ID: s.ID, Address: s.Address, Voter: s.Voter, Session: uint64(s.Session)}
	contact := s.Silent.Milliseconds()
	if s.Silent >= 0 {
		out.ContactMS = &contact
	}
	if s.Standing == nil {
		out.Error = s.Err.Error()
		return out
	}
	lag := furthest - s.Standing.Applied
	out.Role, out.AppliedIndex, out.Lag = s.Standing.Role, &s.Standing.Applied, &lag
	out.Version, out.Level = s.Standing.Version, s.Standing.LevelMax
	return out
}

// Add asks the newcomer first, so that one that can't be taken in is refused with its reason.
func (m members) Add(ctx context.Context, q adminapi.MemberRequest) error {
	if m.d.peers == nil {
		return &adminapi.Error{
			Code: "alone", Message: "edge " + m.d.self.ID + " has no cluster listener, where another replica could reach it",
			Cure:   "set edge.listen.cluster, and edge.tls with certificates of 'iopctl certs' (or edge.cluster.plaintext in a private network), and restart edged",
			Status: http.StatusConflict,
		}
	}
	if err := m.newcomer(ctx, q); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, memberWait)
	defer cancel()
	if err := m.d.store.TakeIn(ctx, storage.Member{ID: q.ID, Address: q.Address}); err != nil {
		return changeError("take replica "+q.ID+" in", err)
	}
	m.d.log.Info("replica taken in; it votes when it has caught up", "replica", q.ID, "address", q.Address)
	return nil
}

// newcomer refuses a replica that answers as one that does not belong here. One that does not answer may be started later.
func (m members) newcomer(ctx context.Context, q adminapi.MemberRequest) error {
	if q.ID == m.d.self.ID {
		return &adminapi.Error{
			Code: "member", Message: "replica " + q.ID + " is the edge that answers", Cure: "give the new replica an edge.id of its own", Status: http.StatusConflict,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, memberAsk)
	defer cancel()
	_, err := m.d.peers.net.Standing(ctx, peerlink.Member{ID: q.ID, Address: q.Address})
	if !errors.Is(err, peerlink.ErrRefused) {
		return nil
	}
	return &adminapi.Error{
		Code: "wrong_replica", Message: fmt.Sprintf("replica %s can't be taken in: %v", q.ID, err),
		Cure:   "start it with an empty edge.data_dir, its own edge.id, a certificate that names it, and edge.cluster.peers that name it and this cluster's replicas",
		Status: http.StatusConflict,
	}
}

// Remove refuses what would stop the cluster.
func (m members) Remove(ctx context.Context, id string, force bool) error {
	seats := m.seats(ctx)
	i := slices.IndexFunc(seats, func(s storage.Seat) bool { return s.ID == id })
	if i < 0 {
		return &adminapi.Error{
			Code: "not_found", Message: "there is no replica " + id + " in the cluster", Cure: "'iopctl cluster members' lists those there are", Status: http.StatusNotFound,
		}
	}
	if seats[i].Voter {
		if e := stops(seats, id); e != nil && (!force || e.Code == "last_voter") {
			return e
		}
	}
	ctx, cancel := context.WithTimeout(ctx, memberWait)
	defer cancel()
	if err := m.d.store.Change(ctx, storage.Change{Remove: id}); err != nil {
		return changeError("remove replica "+id, err)
	}
	m.d.log.Info("replica removed", "replica", id)
	return nil
}

// stops tells why the cluster would stop without a voter; nil = it would not.
func stops(seats []storage.Seat, id string) *adminapi.Error {
	rest, answer := 0, []string{}
	for _, s := range seats {
		if !s.Voter || s.ID == id {
			continue
		}
		rest++
		if s.Standing != nil {
			answer = append(answer, s.ID)
		}
	}
	switch {
	case rest == 0:
		return &adminapi.Error{
			Code: "last_voter", Message: "replica " + id + " is the last one that votes: without it there is no cluster",
			Cure: "add another one first (iopctl cluster add); to end the cluster, just stop edged", Status: http.StatusConflict,
		}
	case 2*len(answer) > rest:
		return nil
	}
	who := "none"
	if len(answer) > 0 {
		who = "only " + strings.Join(answer, ", ")
	}
	return &adminapi.Error{
		Code:    "majority",
		Message: fmt.Sprintf("without replica %s the cluster would have %d voters, of which %s answers: no majority, so it would stop", id, rest, who),
		Cure:    "start the replicas that don't answer, or remove those first; --force removes it all the same", Status: http.StatusConflict,
	}
}

func (m members) Transfer(ctx context.Context, to string) error {
	list := m.d.store.Members()
	i := slices.IndexFunc(list, func(x storage.Member) bool { return x.ID == to })
	switch {
	case to != "" && i < 0:
		return &adminapi.Error{
			Code: "not_found", Message: "there is no replica " + to + " in the cluster", Cure: "'iopctl cluster members' lists those there are", Status: http.StatusNotFound,
		}
	case to != "" && !list[i].Voter:
		return &adminapi.Error{
			Code: "no_vote", Message: "replica " + to + " does not vote yet, so it can't lead", Cure: "wait until 'iopctl cluster members' shows it as a voter", Status: http.StatusConflict,
		}
	case len(list) == 1 && to == "":
		return &adminapi.Error{
			Code: "alone", Message: "there is no other replica that could lead", Cure: "add one first: iopctl cluster add", Status: http.StatusConflict,
		}
	case len(list) == 1:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, memberWait)
	defer cancel()
	if err := m.d.store.Change(ctx, storage.Change{Transfer: true, To: to}); err != nil {
		return changeError("transfer leadership", err)
	}
	return nil
}

func (m members) Verify(ctx context.Context) (*adminapi.Verification, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyWait)
	defer cancel()
	v, err := m.d.store.Verify(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	if m.d.store.Role() == storage.RoleLeader {
		m.d.compared(v)
	}
	out := &adminapi.Verification{Index: v.Index, Same: true, Replicas: make([]adminapi.VerifiedMember, 0, len(v.Replicas))}
	first := ""
	for _, r := range v.Replicas {
		x := adminapi.VerifiedMember{ID: r.ID}
		switch {
		case r.Err != nil:
			x.Error = r.Err.Error()
		case r.Index != v.Index && v.Index != 0:
			x.Error, out.Same = fmt.Sprintf("its log has the mark at index %d", r.Index), false
		default:
			x.Digest = fmt.Sprintf("%x", r.Digest)
			if first == "" {
				first = x.Digest
			}
			out.Same = out.Same && x.Digest == first
		}
		out.Replicas = append(out.Replicas, x)
	}
	return out, nil
}

func (m members) Backup(to io.Writer) error {
	info, err := m.d.store.Backup(to)
	if err == nil {
		m.d.log.Info("backup written", "index", info.Index)
	}
	return err
}

// changeError is what an operator is told of a change of members that was not made.
func changeError(what string, err error) error {
	if errors.Is(err, storage.ErrNoLeader) || errors.Is(err, storage.ErrNotLeader) || errors.Is(err, context.DeadlineExceeded) {
		return unavailable(err)
	}
	return &adminapi.Error{
		Code: "unavailable", Message: fmt.Sprintf("%s: %v", what, err),
		Cure: "see 'iopctl cluster members' for what is, correct it, and try again", Status: http.StatusConflict,
	}
}
