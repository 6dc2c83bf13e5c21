package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// newGrowing starts one replica that is alone, and its node; the others have addresses and are not started.
func newGrowing(t *testing.T, l layout, n int) *cluster {
	t.Helper()
	c := newEmptyCluster(t, l, n)
	c.alone(0)
	c.await(0)
	c.startNode("n1")
	c.awaitLinks("n1")
	return c
}

// alone launches replica i with a file that names no peers.
func (c *cluster) alone(i int) {
	c.t.Helper()
	c.layout.edge = map[string]any{"cluster": map[string]any{"peers": []any{}}, "advertise": map[string]any{"cluster": c.public(i), "node": "127.0.0.1:1"}}
	c.launch(i)
	c.layout.edge = map[string]any{"advertise": map[string]any{"node": "127.0.0.1:1"}}
}

// members asks replica i for all.
func (c *cluster) members(i int) (x adminapi.Cluster) {
	c.t.Helper()
	return fact[adminapi.Cluster](c.at(i), "/cluster")
}

// voters are the ids of those that vote, as replica i sees it.
func (c *cluster) voters(i int) []string {
	c.t.Helper()
	var out []string
	for _, m := range c.members(i).Members {
		if m.Voter {
			out = append(out, m.ID)
		}
	}
	return out
}

// sameState has iopctl compare all replicas, and wants n answers.
func (c *cluster) sameState(i, n int) {
	c.t.Helper()
	var v adminapi.Verification
	if err := json.Unmarshal([]byte(c.at(i).iopctl(0, "cluster", "verify", "-o", "json")), &v); err != nil {
		c.t.Fatal(err)
	}
	answered := 0
	for _, r := range v.Replicas {
		if r.Digest != "" {
			answered++
		}
	}
	if !v.Same || answered != n {
		c.t.Errorf("compared: %+v", v)
	}
}

// traffic asks again and again through replica i, until stop; every answer has to be whole.
func (c *cluster) traffic(i int) (answered *atomic.Int64, stop func()) {
	answered = &atomic.Int64{}
	quit := make(chan struct{})
	var wait sync.WaitGroup
	address := c.at(i).edge.openai
	wait.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-quit:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			a := call(ctx, address, ask{model: "ornith-fast", tag: fmt.Sprint("traffic", n), stream: n%2 == 0})
			cancel()
			if a.status != 200 || !a.clean {
				c.t.Errorf("the traffic noticed something: %s: status %d, clean %v, %v: %.300s", a.tag, a.status, a.clean, a.err, a.body)
				return
			}
			answered.Add(1)
			time.Sleep(4 * time.Millisecond)
		}
	})
	stop = sync.OnceFunc(func() { close(quit); wait.Wait() })
	c.t.Cleanup(stop)
	return answered, stop
}

// TestClusterGrowsAndShrinks: an edge that is alone gets two more, and is alone again in the end, without a stop: a stream
// that is open all the time and a request that waits all the time end as they should, and others come and go.
func TestClusterGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 4})
	held := backend.Plan{Tokens: 5, Hold: backend.AfterTokens, At: 2}
	b.SetFor("through", held)
	b.SetFor("guest", held)
	slow := newBackend(t, backend.Options{Limit: 1, Default: held})
	l := shared(b, 4)
	l.providers = append(l.providers, provider{id: "slow", url: slow.URL(), capacity: 1})
	l.models["slow"] = []string{"slow"}
	c := newGrowing(t, l, 3)
	w := c.at(0)
	through := w.open(ask{tag: "through"})
	through.next()
	w.start(ask{model: "slow", tag: "holder"})
	w.awaitLeases(2)
	waiter := w.queue(ask{model: "slow", tag: "waiter", stream: true}, 1)
	answered, stop := c.traffic(0)

	w.iopctl(0, "cluster", "add", c.id(1), c.public(1)) // before it is started
	if m := c.members(0).Members; len(m) != 2 || m[1].Voter || m[1].Role != "" || m[1].Error == "" {
		t.Errorf("members %+v", m)
	}
	c.launch(1)
	w.iopctl(0, "cluster", "add", c.id(1), c.public(1), "--wait", "--wait-timeout", "30s")
	c.await(1)
	c.launch(2)
	c.await(2)
	w.iopctl(0, "cluster", "add", c.id(2), c.public(2), "--wait", "--wait-timeout", "30s")
	if got := c.voters(0); !slices.Equal(got, []string{"edge-1", "edge-2", "edge-3"}) {
		t.Fatalf("voters %v", got)
	}
	c.awaitLinks("n1")
	for i := range c.replicas {
		c.at(i).want(200, ask{tag: "three, through " + c.id(i), model: "ornith-fast"})
	}
	c.sameState(1, 3)
	wantWords(t, "status", w.iopctl(0, "status"), "Members", "edge-1", "edge-2", "edge-3")
	wantWords(t, "members", c.at(2).iopctl(0, "cluster", "members", "-o", "wide"), "edge-1", "leader", "follower", c.public(1), "now")

	w.iopctl(0, "cluster", "transfer", c.id(2)) // to the third, which then goes
	if got := c.leader(); got != 2 {
		t.Errorf("%s leads", c.id(got))
	}
	c.kill(1)
	await(t, "the second does not answer", func() bool {
		return slices.ContainsFunc(c.members(0).Members, func(m adminapi.ClusterMember) bool { return m.ID == "edge-2" && m.Role == "" })
	})
	said := w.iopctl(1, "cluster", "remove", c.id(2))
	wantWords(t, "remove without a majority", said, "2 voters", "only edge-1 answers", "cure:", "--force")
	c.sameState(0, 2)
	c.start(1)
	c.awaitLinks("n1")

	guest := c.at(2).open(ask{tag: "guest"}) // through the one that goes
	guest.next()
	c.at(1).iopctl(0, "cluster", "remove", c.id(2))
	await(t, "it has heard that it is out", func() bool { return c.at(2).edge.says("was removed from its cluster") })
	b.LetTag("guest")
	if all, clean := guest.rest(); !clean || len(all) != 6 || all[5] != "[DONE]" {
		t.Errorf("the stream through the removed replica ended with %q, clean %v", all, clean)
	}
	if code := c.at(2).edge.code(t); code != 1 {
		t.Errorf("the removed replica ended with code %d", code)
	}
	if !c.at(2).edge.says("was removed from its cluster") || !c.at(2).edge.says("empty its data directory and start it with a new replica id") {
		t.Errorf("the removed replica said: %s", tail(c.at(2).edge.out.String(), 5))
	}
	c.launch(2) // with its old directory
	if code := c.at(2).edge.code(t); code != 1 || !c.at(2).edge.says("was removed from its cluster") {
		t.Errorf("started again, it ended with code %d: %s", code, tail(c.at(2).edge.out.String(), 5))
	}
	w.iopctl(0, "cluster", "remove", c.id(1))
	if code := c.at(1).edge.code(t); code != 1 {
		t.Errorf("the removed replica ended with code %d", code)
	}
	wantWords(t, "remove the last", w.iopctl(1, "cluster", "remove", c.id(0), "--force"), "the last one that votes", "cure:")
	wantWords(t, "remove nobody", w.iopctl(1, "cluster", "remove", "edge-9"), "no replica edge-9", "cure:")
	if got := c.voters(0); !slices.Equal(got, []string{"edge-1"}) {
		t.Errorf("voters %v", got)
	}
	from := answered.Load()
	await(t, "the traffic goes on", func() bool { return answered.Load() > from+5 })
	stop()

	if waiter.over() {
		t.Errorf("the waiter did not wait: %d %s", waiter.got.status, waiter.got.body)
	}
	b.LetAll()
	slow.LetAll()
	if all, clean := through.rest(); !clean || len(all) != 6 || all[5] != "[DONE]" {
		t.Errorf("the stream that was open all the time ended with %q, clean %v", all, clean)
	}
	if a := waiter.wait(t); a.status != 200 || !a.clean {
		t.Errorf("the waiter: %d %s", a.status, a.body)
	}
	w.awaitIdle()
	for _, x := range []*backend.Backend{b, slow} {
		if s := x.Stats(); s.Violations != 0 || s.Aborted != 0 {
			t.Errorf("at a backend: %+v", s)
		}
	}
}

// TestStrangersAreNotTakenIn: a replica of another cluster, and one with the directory of another replica.
func TestStrangersAreNotTakenIn(t *testing.T) {
	t.Parallel()
	c := newGrowing(t, shared(newBackend(t, backend.Options{}), 1), 3)
	c.alone(1) // a cluster of its own
	c.await(1)
	said := c.at(0).iopctl(1, "cluster", "add", c.id(1), c.public(1))
	wantWords(t, "of another cluster", said, "is of cluster", "cure:", "empty edge.data_dir")
	said = c.at(0).iopctl(1, "cluster", "add", "edge-7", c.public(1))
	wantWords(t, "under another name", said, "cure:")
	c.stop(1)
	c.launch(1) // with peers, but its old directory
	await(t, "it is told that it is of another cluster", func() bool { return c.at(1).edge.says("is of cluster") })
	if got := c.voters(0); len(got) != 1 {
		t.Errorf("voters %v", got)
	}
	c.kill(1)

	if err := os.MkdirAll(c.at(2).dataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.at(2).dataDir()+"/letters.txt", []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.launch(2)
	if code := c.at(2).edge.code(t); code != 1 || !strings.Contains(c.at(2).edge.out.String(), "choose an empty directory") {
		t.Errorf("a directory with something else: code %d: %s", code, tail(c.at(2).edge.out.String(), 5))
	}
	if err := os.RemoveAll(c.at(2).dataDir()); err != nil {
		t.Fatal(err)
	}
	c.start(2)
	c.at(0).iopctl(0, "cluster", "add", c.id(2), c.public(2), "--wait")
	wantWords(t, "taken in", c.at(2).iopctl(0, "cluster", "members"), "edge-1", "edge-3")
	c.kill(0)
	c.alone(0) // its file still names no peers
	c.await(0)
	if got := c.agree(); got == 0 || len(c.voters(0)) != 2 {
		t.Errorf("back at index %d with %v", got, c.voters(0))
	}
}

// TestReplicaWithALostDiskIsReplaced by one with another id, at the same address or another.
func TestReplicaWithALostDiskIsReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, shared(newBackend(t, backend.Options{}), 2), 3)
	gone := c.followers()[0]
	other := c.leader()
	c.kill(gone)
	if err := os.RemoveAll(c.at(gone).dataDir()); err != nil {
		t.Fatal(err)
	}
	c.launch(gone)
	if code := c.at(gone).edge.code(t); code != 1 || !c.at(gone).edge.says("is empty and never did") {
		t.Errorf("with an empty disk it ended with code %d: %s", code, tail(c.at(gone).edge.out.String(), 5))
	}
	old := c.id(gone)
	if err := os.RemoveAll(c.at(gone).dataDir()); err != nil {
		t.Fatal(err)
	}
	c.names = map[int]string{gone: "edge-9"}
	done := make(chan string, 1)
	go func() { done <- c.at(other).iopctl(0, "cluster", "replace", old, "edge-9", c.public(gone)) }()
	c.launch(gone)
	c.await(gone)
	if said := <-done; !strings.Contains(said, "edge-9") || strings.Contains(said, old) {
		t.Errorf("replaced: %s", said)
	}
	c.awaitLinks("n1")
	c.at(gone).want(200, ask{tag: "through the new one", model: "ornith-fast"})
	c.sameState(other, 3)
}
