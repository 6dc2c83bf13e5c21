//go:build unix

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestBackgroundSurvivesFreeze: one replica after the other stands still for longer than its session lives, and goes on.
// What it ran is run elsewhere meanwhile, or goes on there; nothing is recorded twice.
func TestBackgroundSurvivesFreeze(t *testing.T) {
	t.Parallel()
	l, _, text := backgroundLayout(t, 4)
	l.throttled = false
	c := newCluster(t, l, 3)
	awaitBackground(t, c)
	var ids []string
	for round := range 2 {
		for i := range 12 {
			ids = append(ids, background(t, c.own(i%3, 8080), fmt.Sprint("hello ", round, i), nil).ID)
		}
		time.Sleep(400 * time.Millisecond) // some run by now
		frozen := round
		c.at(frozen).edge.signal(t, syscall.SIGSTOP)
		others := []string{c.own((frozen+1)%3, 8080), c.own((frozen+2)%3, 8080)}
		await(t, "the cluster has noticed", func() bool {
			for _, id := range ids {
				if r, ok := poll(others[0], id); !ok || !r.over() {
					return false
				}
			}
			return true
		})
		c.at(frozen).edge.signal(t, syscall.SIGCONT)
		c.awaitLinks("n1")
		for i, id := range ids {
			wantCompleted(t, c.own(i%3, 8080), id, text)
		}
	}
	c.agree()
}
