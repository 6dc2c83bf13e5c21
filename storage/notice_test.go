package storage

import (
	"testing"
	"time"
)

// TestFollowersNoticeInTurn: each follower has its own time to stand for election, whoever leads; who has no vote has none
// to wait for.
func TestFollowersNoticeInTurn(t *testing.T) {
	members := []Member{{ID: "a", Voter: true}, {ID: "b", Voter: true}, {ID: "c", Voter: true}, {ID: "bb"}}
	for _, c := range []struct {
		leader, self string
		want         time.Duration
	}{
		{"a", "b", 0},
		{"a", "c", noticeEach},
		{"b", "a", 0},
		{"b", "c", noticeEach},
		{"c", "a", 0},
		{"c", "b", noticeEach},
	} {
		if got := turn(members, c.leader, c.self); got != c.want {
			t.Errorf("%s leads, %s waits %v, want %v", c.leader, c.self, got, c.want)
		}
	}
}
