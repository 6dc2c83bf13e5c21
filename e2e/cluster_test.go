package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"iop/e2e/backend"
	"iop/e2e/cut"
	"iop/edged/adminapi"
)

// TestClusterStartsInAnyOrder: replicas that are all new form a cluster once all are there, and not before; each serves
// clients, and all show the same index and one leader.
func TestClusterStartsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		order []int
		tls   bool
	}{
		{"plain", []int{2, 0, 1}, false},
		{"tls", []int{1, 2, 0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t, backend.Options{})
			w := newEmptyCluster(t, shared(b, 2), 3)
			if c.tls {
				w.secure()
			}
			for _, i := range c.order[:2] {
				w.launch(i)
			}
			for k, i := range c.order[:2] {
				await(t, w.id(i)+" waits for the third", func() bool { return w.at(i).edge.says("missing=" + w.id(c.order[2])) })
				if w.at(i).edge.out.line != "" {
					t.Errorf("%s, started as number %d, is ready without the third: two new replicas of three formed a cluster", w.id(i), k+1)
				}
			}
			w.launch(c.order[2])
			w.awaitAll()
			w.startNodes()
			for i := range w.replicas {
				w.at(i).want(200, ask{tag: fmt.Sprint("through ", w.id(i)), model: "ornith-fast"})
			}
			if got := len(b.Tags()); got != 3 {
				t.Errorf("the backend got %d requests", got)
			}
			index := w.agree()
			leaders := 0
			for i := range w.replicas {
				var s adminapi.Status
				if err := json.Unmarshal([]byte(w.at(i).iopctl(0, "status", "-o", "json")), &s); err != nil {
					t.Fatal(err)
				}
				if s.AppliedIndex < index || s.Edge != w.id(i) {
					t.Errorf("iopctl status of %s: %+v", w.id(i), s)
				}
				if s.Role == "leader" {
					leaders++
				}
			}
			if leaders != 1 {
				t.Errorf("%d leaders", leaders)
			}
			if c.tls {
				w.renew()
			}
		})
	}
}

// TestClusterLosesReplicasAndGetsThemBack: kill -9 of the leader, then of the next one after the first is back; the
// others go on, with one index and one leader again at the end.
func TestClusterLosesReplicasAndGetsThemBack(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	c := newCluster(t, shared(b, 2), 3)
	for round := range 2 {
		old := c.leader()
		c.kill(old)
		for _, i := range c.running() {
			c.at(i).want(200, ask{tag: fmt.Sprintf("round %d through %s", round, c.id(i)), model: "ornith-fast"})
		}
		if now := c.leader(); now == old {
			t.Fatalf("%s leads and is dead", c.id(old))
		}
		c.start(old)
		c.awaitLinks("n1")
		c.at(old).want(200, ask{tag: fmt.Sprintf("round %d back", round), model: "ornith-fast"})
	}
	c.agree()
}

// TestClusterWithoutItsLeader: a leader that nobody hears any more is replaced; it admits nothing, and comes back as a
// follower with what the others decided.
func TestClusterWithoutItsLeader(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	c := newCluster(t, shared(b, 2), 3)
	old := c.leader()
	c.apart(old)
	rest := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == old })
	now := c.leader(rest...)
	for _, i := range rest {
		c.at(i).want(200, ask{tag: "with a majority, " + c.id(i), model: "ornith-fast"})
	}
	if a := c.at(old).ask(ask{tag: "alone", model: "ornith-fast"}); a.status != 503 {
		t.Errorf("a replica without a majority answered %d: %s", a.status, a.body)
	}
	if _, ran := b.Run("alone"); ran {
		t.Error("a replica without a majority ran something")
	}
	c.heal()
	await(t, "the old leader follows", func() bool { s := c.at(old).status(); return s.Role == "follower" && s.Leader != "" })
	c.agree()
	c.awaitLinks("n1")
	c.at(old).want(200, ask{tag: "healed", model: "ornith-fast"})
	if s := c.at(now).status(); s.Queue.Pending != 0 {
		t.Errorf("%d still pending", s.Queue.Pending)
	}
	c.agree()
}

// TestClusterWaysBreakOneByOne: a node that one replica has lost, and a leader whose words do not reach one follower: the
// others serve all the while, and all is as before once the way is back.
func TestClusterWaysBreakOneByOne(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	c := newCluster(t, shared(b, 2), 3)
	leader, far := c.leader(), c.followers()[0]
	others := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == far })
	serve := func(round string) {
		t.Helper()
		for _, i := range others {
			c.at(i).want(200, ask{tag: round + " through " + c.id(i), model: "ornith-fast"})
		}
	}
	line := c.lines["n1"][far]
	generation := c.link(far)
	line.Swallow(cut.Up, cut.Down)
	line.SwallowNew(cut.Up, cut.Down)
	// Its new link may come at once: it knows other addresses of the replica.
	await(t, c.id(far)+" has lost that link to the node", func() bool { return c.link(far) != generation })
	serve("node away")
	line.CutHeld()
	line.Pass()
	c.awaitLinks("n1")
	c.at(far).want(200, ask{tag: "node back", model: "ornith-fast"})

	before := c.at(far).status().AppliedIndex
	c.deaf(leader, far)
	serve("one way lost")
	if now := c.leader(others...); now == far {
		t.Errorf("%s leads and hears nobody", c.id(far))
	}
	c.heal()
	serve("healed")
	if now := c.agree(); now <= before {
		t.Errorf("index %d after %d", now, before)
	}
	c.awaitLinks("n1")
	c.at(far).want(200, ask{tag: "after all", model: "ornith-fast"})
}

// link is the generation of a replica's ready link to n1; 0 = none.
func (c *cluster) link(replica int) uint64 {
	for _, l := range c.at(replica).node("n1").Links {
		if l.Edge == c.id(replica) && l.State == "ready" {
			return l.Generation
		}
	}
	return 0
}

// renew gives everything a new certificate while it runs, breaks all connections, and sees them come back.
func (c *cluster) renew() {
	c.t.Helper()
	dir := filepath.Join(c.dir, "certs")
	for i := range c.replicas {
		c.at(i).iopctl(0, "certs", "edge", c.id(i), "--dir", dir, "--renew")
	}
	c.at(0).iopctl(0, "certs", "node", "n1", "--dir", dir, "--renew")
	c.at(0).iopctl(0, "certs", "show", "--dir", dir)
	before := c.at(0).node("n1").Links
	for _, row := range append(c.paths, c.lines["n1"]) {
		for _, p := range row {
			p.Cut()
		}
	}
	for i := range c.replicas {
		await(c.t, "the node has a new link to "+c.id(i), func() bool {
			return slices.ContainsFunc(c.at(i).node("n1").Links, func(l linkRow) bool {
				return l.Edge == c.id(i) && l.State == "ready" && !slices.ContainsFunc(before, func(o linkRow) bool { return o.Generation == l.Generation })
			})
		})
		c.at(i).want(200, ask{tag: "renewed, through " + c.id(i), model: "ornith-fast"})
	}
	c.agree()
}
