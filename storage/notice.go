package storage

import (
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"
)

// A follower has to notice that its leader is silent. By itself raft looks when a timer ends that it does not start anew
// when it hears of the leader, so it notices after anything from one to three times electionTime. notice looks when it
// is time to: that took the time from a leader's death to the next grant from 1.1 s to 0.7 s (docs/BENCHMARKS.md).
//
// The others of the cluster notice one after the other, by their ids, so that there is rarely a second candidate before
// the first one has been elected. Who notices wrongly is only refused: the others have a leader, and there is a
// pre-vote.
const (
	// noticeEach is between two replicas that notice; an election takes less.
	noticeEach = 150 * time.Millisecond
	// noticeSpread is drawn on top of it.
	noticeSpread = 50 * time.Millisecond
)

// notice has this replica stand for election when its leader has been silent for long enough, until the store ends.
func (g *group) notice() {
	timer := time.NewTimer(electionTime)
	defer timer.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.store.failed:
			return
		case <-timer.C:
		}
		timer.Reset(g.look())
	}
}

// look stands for election if it is time to, and returns when to look again.
func (g *group) look() time.Duration {
	r := g.log.raft
	heard := r.LastContact()
	_, leader := r.LeaderWithID()
	if r.State() != raft.Follower || leader == "" || heard.IsZero() {
		return electionTime
	}
	patience := electionTime + turn(g.book.logged(), string(leader), g.store.options.Replica) + rand.N(noticeSpread)
	if left := patience - time.Since(heard); left > 0 {
		return left
	}
	g.log.hurry()
	return electionTime
}

// turn is for how long a replica leaves the election to others: those with smaller ids that the leader is not.
func turn(members []Member, leader, self string) time.Duration {
	before := 0
	for _, m := range members {
		if m.Voter && m.ID != leader && m.ID < self {
			before++
		}
	}
	return time.Duration(before) * noticeEach
}

// hurry has raft look at its timer now: it does when its heartbeat timeout is lowered.
func (l *raftLog) hurry() {
	for _, timeout := range []time.Duration{electionTime, electionTime - time.Millisecond} {
		c := l.raft.ReloadableConfig()
		c.HeartbeatTimeout = timeout
		if err := l.raft.ReloadConfig(c); err != nil {
			l.group.logger.Warn("raft can't be told to look for a leader", "error", err)
			return
		}
	}
}
