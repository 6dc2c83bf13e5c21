package storage

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// book knows where the replicas are: what the log says, and above it the peers of this replica's configuration (an
// address may change while it is stopped) until the log says something new.
type book struct {
	mu      sync.Mutex
	members []Member // by id
	peers   []Member // of the configuration, and those about to be taken in
	log     []Member // the members that the log named last
}

// fill begins with the members that the log names.
func (b *book) fill(c raft.Configuration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = membersOf(c)
	b.members = slices.Clone(b.log)
	for _, p := range b.peers {
		if i := find(b.members, p.ID); i >= 0 && p.Address != "" {
			b.members[i].Address = p.Address
		}
	}
}

// learn takes the members that the log names now, and tells whether they have changed.
func (b *book) learn(c raft.Configuration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := membersOf(c)
	if slices.Equal(list, b.log) {
		return false
	}
	b.log = list
	b.members = slices.Clone(list)
	return true
}

// expect notes where a replica is that is about to be a member.
func (b *book) expect(m Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := find(b.peers, m.ID); i >= 0 {
		b.peers[i] = m
		return
	}
	b.peers = append(b.peers, m)
}

// logged returns the members by id with the addresses that the log names.
func (b *book) logged() []Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

// all returns the members by id; peers that are none yet are not among them.
func (b *book) all() []Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.members)
}

func (b *book) find(id string) (Member, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range [...][]Member{b.members, b.peers} {
		if i := find(list, id); i >= 0 {
			return list[i], true
		}
	}
	return Member{}, false
}

func (b *book) at(address string) (Member, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range [...][]Member{b.members, b.peers} {
		for _, m := range list {
			if m.Address == address {
				return m, true
			}
		}
	}
	return Member{}, false
}

var errNotMember = errors.New("not a member of the cluster")

// ServerAddr implements raft.ServerAddressProvider.
func (b *book) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	m, ok := b.find(string(id))
	if !ok || m.Address == "" {
		return "", errNotMember
	}
	return raft.ServerAddress(m.Address), nil
}

func membersOf(c raft.Configuration) []Member {
	out := make([]Member, 0, len(c.Servers))
	for _, s := range c.Servers {
		out = append(out, Member{ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	sortMembers(out)
	return out
}

func sortMembers(list []Member) {
	slices.SortFunc(list, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
}

func find(list []Member, id string) int {
	return slices.IndexFunc(list, func(m Member) bool { return m.ID == id })
}
