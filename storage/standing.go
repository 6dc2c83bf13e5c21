package storage

import "slices"

// Standing tells how this replica stands. It answers at once, also before Open has returned.
func (s *Store) Standing() Standing {
	st := Standing{
		ID: s.options.Replica, Version: s.options.Version, Applied: s.replica.applied.Load(),
		Level: s.replica.level.Load(), LevelMax: s.levelMax(), Role: s.Role().String(),
	}
	st.Cluster, st.Empty = s.membership()
	if s.group == nil {
		return st
	}
	if s.joining() && st.Role == RoleFollower.String() {
		st.Role = "joining"
	}
	if log := s.group.running.Load(); log != nil {
		st.Last, st.Term, st.Behind = log.lastIndex(), log.term(), log.behind()
		if log.seeking() {
			st.Role = "candidate"
		}
		if st.Leader = log.leader(); st.Leader != "" {
			m, _ := s.group.book.find(st.Leader)
			st.LeaderAddress = m.Address
		}
		st.Members = s.group.book.all()
		return st
	}
	if st.Empty {
		st.Role = "forming"
		st.Members = slices.Clone(s.options.Cluster.Peers)
		sortMembers(st.Members)
	}
	return st
}

// Members returns the members of the cluster as this replica knows them, by id; of one that is alone, itself.
func (s *Store) Members() []Member {
	if s.group == nil {
		return []Member{{ID: s.options.Replica, Voter: true}}
	}
	return s.group.book.all()
}

// joining tells that this replica was taken into a cluster and has not caught up for the first time.
func (s *Store) joining() bool {
	s.dir.mu.Lock()
	defer s.dir.mu.Unlock()
	return s.dir.identity.State == stateJoining
}
