package peerlink

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"iop/proto/peerpb"
)

func verdictKind(v Verdict) peerpb.Verdict_Kind {
	switch v {
	case VerdictAccepted:
		return peerpb.Verdict_KIND_ACCEPTED
	case VerdictNotLeader:
		return peerpb.Verdict_KIND_NOT_LEADER
	case VerdictOverloaded:
		return peerpb.Verdict_KIND_OVERLOADED
	}
	return peerpb.Verdict_KIND_MALFORMED
}

func verdictOf(k peerpb.Verdict_Kind) (Verdict, error) {
	switch k {
	case peerpb.Verdict_KIND_ACCEPTED:
		return VerdictAccepted, nil
	case peerpb.Verdict_KIND_NOT_LEADER:
		return VerdictNotLeader, nil
	case peerpb.Verdict_KIND_OVERLOADED:
		return VerdictOverloaded, nil
	}
	return 0, fmt.Errorf("the other side could not use the batches (%v)", k)
}

func standingAnswer(s Standing) *peerpb.StandingAnswer {
	a := &peerpb.StandingAnswer{
		Id: s.ID, Cluster: s.Cluster, Leader: s.Leader, LeaderAddress: s.LeaderAddress, Role: s.Role, Empty: s.Empty,
		Applied: s.Applied, Last: s.Last, Term: s.Term, Level: s.Level, LevelMax: s.LevelMax, Version: s.Version,
	}
	for _, m := range s.Members {
		a.Members = append(a.Members, memberMessage(m))
	}
	return a
}

func standingOf(a *peerpb.StandingAnswer) Standing {
	s := Standing{
		ID: a.Id, Cluster: a.Cluster, Leader: a.Leader, LeaderAddress: a.LeaderAddress, Role: a.Role, Empty: a.Empty,
		Applied: a.Applied, Last: a.Last, Term: a.Term, Level: a.Level, LevelMax: a.LevelMax, Version: a.Version,
	}
	for _, m := range a.Members {
		s.Members = append(s.Members, Member{ID: m.Id, Address: m.Address, Voter: m.Voter})
	}
	return s
}

func memberMessage(m Member) *peerpb.Member {
	return &peerpb.Member{Id: m.ID, Address: m.Address, Voter: m.Voter}
}

// fault puts an error of the host on the wire.
func fault(err error) error {
	code := codes.Unknown
	switch {
	case errors.Is(err, ErrNotLeader):
		code = codes.FailedPrecondition
	case errors.Is(err, ErrOverloaded):
		code = codes.ResourceExhausted
	case errors.Is(err, ErrStarting):
		code = codes.Aborted
	case errors.Is(err, ErrTwin):
		code = codes.AlreadyExists
	case errors.Is(err, ErrRefused):
		code = codes.PermissionDenied
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, err.Error())
}

// cause takes an error off the wire.
func cause(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	switch s.Code() {
	case codes.FailedPrecondition:
		return fmt.Errorf("%w: %s", ErrNotLeader, s.Message())
	case codes.ResourceExhausted:
		return fmt.Errorf("%w: %s", ErrOverloaded, s.Message())
	case codes.Aborted:
		return fmt.Errorf("%w: %s", ErrStarting, s.Message())
	case codes.AlreadyExists:
		return fmt.Errorf("%w: %s", ErrTwin, s.Message())
	case codes.PermissionDenied:
		return told(s.Message())
	case codes.Unavailable:
		return unreachable(s.Message())
	case codes.Unimplemented:
		return errors.New("the replica has an older version that does not know this; upgrade it")
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %s", context.DeadlineExceeded, s.Message())
	case codes.Canceled:
		return fmt.Errorf("%w: %s", context.Canceled, s.Message())
	}
	return errors.New(s.Message())
}
