package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"iop/e2e/backend"
)

// newerEdged builds an edged that knows one feature level more, and tries to propose a command of it all the time.
func newerEdged(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edged-newer"+exe())
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "iop_next_level", "-o", path, "iop/edged/cmd/edged").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// What the newer build says: that it has to wait, and that it need not any more.
const (
	tomorrowWaits = "tomorrow's command has to wait"
	tomorrowIs    = "tomorrow's command is in the log"
)

// TestRollingUpgrade: the replicas of a cluster under load are replaced one by one by a newer build, followers first or the
// leader first. What is new is not proposed as long as one older replica is a member, and is once none is. From then on
// the older build can't come back, nor join, and says why.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	newer := newerEdged(t)
	for _, first := range []string{"followers", "leader"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			upgrade(t, newer, first == "leader")
		})
	}
}

func upgrade(t *testing.T, newer string, leaderFirst bool) {
	b := newBackend(t, backend.Options{Limit: 3})
	c := newEmptyCluster(t, shared(b, 3), 3)
	upgraded := map[int]bool{}
	c.border = func(i int, path string, args ...string) (string, []string) {
		if upgraded[i] {
			path = newer
		}
		return path, args
	}
	for i := range 3 {
		c.launch(i)
	}
	c.awaitAll()
	c.startNodes()
	await(t, "the level of today", func() bool { return c.members(0).Level == c.members(0).Members[0].Level })
	today := c.members(0).Level
	var order []int
	for len(order) < 3 {
		leader := c.leader()
		next := leader
		if !leaderFirst || slices.Contains(order, leader) {
			next = slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return !slices.Contains(order, i) && (i != leader || len(order) == 2) })
		}
		order = append(order, next)
		_, stop := c.traffic((next + 1) % 3)
		c.stop(next)
		upgraded[next] = true
		c.start(next)
		c.awaitLinks("n1")
		c.at(next).want(200, ask{tag: "through the upgraded " + c.id(next), model: "ornith-fast"})
		if len(order) < 3 {
			c.at(next).iopctl(0, "cluster", "transfer", c.id(next))
			await(t, "the newer one leads, and would propose what is new", func() bool { return c.at(next).edge.says(tomorrowWaits) })
			if got := c.members(next).Level; got != today {
				t.Errorf("level %d with an older replica, want %d", got, today)
			}
			for i := range 3 {
				if c.at(i).edge.says(tomorrowIs) {
					t.Errorf("%s proposed what an older replica can't read", c.id(i))
				}
			}
			c.sameState(next, 3)
		}
		stop()
	}
	await(t, "the level is raised", func() bool { return c.members(0).Level == today+1 })
	await(t, "what is new is proposed", func() bool { return c.at(c.leader()).edge.says(tomorrowIs) })
	c.agree()
	c.sameState(0, 3)
	olderComesBack(t, c, upgraded)
	for 2*len(c.running()) > 4 {
		c.stop(c.leader())
	}
	for i := range 3 {
		c.kill(i)
		if err := os.RemoveAll(c.at(i).dataDir()); err != nil { // the end of a test reads it with today's code, which can't
			t.Fatal(err)
		}
	}
}

// olderComesBack starts the older build on the directory of a newer one, and as a new replica.
func olderComesBack(t *testing.T, c *cluster, upgraded map[int]bool) {
	old := c.followers()[0]
	other := c.leader()
	c.stop(old)
	upgraded[old] = false
	c.launch(old)
	if code := c.at(old).edge.code(t); code != 1 {
		t.Errorf("the older build ended with code %d", code)
	}
	wantWords(t, "the older build", tail(c.at(old).edge.out.String(), 3), "newer version", "run the version that wrote it or a newer one", "data_dir")
	c.at(other).iopctl(0, "cluster", "remove", c.id(old))
	if err := os.RemoveAll(c.at(old).dataDir()); err != nil {
		t.Fatal(err)
	}
	c.names = map[int]string{old: "edge-9"}
	c.launch(old)
	if code := c.at(old).edge.code(t); code != 1 {
		t.Errorf("the older build that joins ended with code %d", code)
	}
	wantWords(t, "the older build that joins", tail(c.at(old).edge.out.String(), 3), "too old for its cluster", "run the version that", "or a newer one")
	if got := c.voters(other); len(got) != 2 || len(c.members(other).Members) != 2 {
		t.Errorf("the older build was taken in: %+v", c.members(other).Members)
	}
	if err := os.RemoveAll(c.at(old).dataDir()); err != nil {
		t.Fatal(err)
	}
	upgraded[old] = true
	c.launch(old)
	c.at(other).iopctl(0, "cluster", "add", "edge-9", c.public(old), "--wait")
	c.await(old)
	c.sameState(other, 3)
}
