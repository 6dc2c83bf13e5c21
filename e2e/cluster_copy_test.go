package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestCopyOfARunningReplicaIsRefused: a copy of a replica's data directory is started under the same id while the replica
// runs, at another address. It is not taken for the replica that has moved: the cluster keeps the one that it has, and the
// copy, which does not know what the replica confirmed since, gets no vote and serves nobody.
func TestCopyOfARunningReplicaIsRefused(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	c := newCluster(t, shared(b, 2), 3)
	at := c.followers()[0]
	c.kill(at)
	copied := filepath.Join(c.dir, "copied")
	if err := os.CopyFS(copied, os.DirFS(c.at(at).dataDir())); err != nil {
		t.Fatal(err)
	}
	c.start(at)
	c.awaitLinks("n1")
	serve := func(round string) {
		t.Helper()
		for i := range c.replicas {
			for k := range 3 {
				c.at(i).want(200, ask{tag: fmt.Sprint(round, " through ", c.id(i), " ", k), model: "ornith-fast"})
			}
		}
	}
	serve("before")
	term := c.at(at).status().Term
	file := string(c.file(at))
	file = strings.ReplaceAll(file, c.at(at).dataDir(), copied)
	for _, port := range []int{8080, 7443, 9080, 7400} {
		file = strings.ReplaceAll(file, c.own(at, port), c.own(at, port+1))
	}
	file = strings.ReplaceAll(file, c.public(at), c.own(at, 7401))
	path, args := program(t, "edged"), []string{"--config", c.at(at).write("copy.yaml", []byte(file)), "--log-level", "debug"}
	twin := spawn(t, "the copy", nil, path, args...)
	c.all = append(c.all, twin)
	await(t, "the copy ends, or serves", func() bool { return !twin.running() || twin.says(" ready openai=") })
	serve("beside the copy")
	for i := range c.replicas {
		for _, m := range c.members(i).Members {
			if m.ID == c.id(at) && m.Address != c.public(at) {
				t.Errorf("%s takes %s to be at %s", c.id(i), m.ID, m.Address)
			}
		}
	}
	if now := c.at(at).status().Term; now != term {
		t.Errorf("term %d after %d", now, term)
	}
	if twin.running() || twin.code(t) == 0 || !twin.says("two processes have one replica id") {
		t.Error("the copy did not end, and say why")
	}
	serve("after")
	c.agree()
}
