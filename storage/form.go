package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The first start of a replica with peers. Each empty replica draws a nonce, keeps it on disk, and tells it to whoever
// asks. If all peers answer and are empty, the cluster is formed by all of them alike: its members are the peers, its id
// is the nonces in order of the replica ids. So all come to the same id without anybody deciding it, and a replica that
// was not done when the others were can see from its own nonce in the id that it is the one that they counted: it has
// never voted. One whose disk was lost has another nonce, and must not vote under its old name, because it does not
// remember for whom it voted and what it confirmed.

// ErrLostDisk says that the cluster has a replica of this id, but with another directory.
var ErrLostDisk = errors.New("the cluster knows this replica with another data directory")

// ErrOldProgram says that the cluster has entries that this version can't read; it can't join.
var ErrOldProgram = errors.New("this program is too old for its cluster")

const (
	stateForming = "forming" // it has a nonce instead of a cluster id
	stateJoining = "joining" // it is of a cluster, but may have nothing of its log yet

	nonceBytes = 4
	askEach    = 100 * time.Millisecond
	// formTell is how often it is said what is waited for.
	formTell = 5 * time.Second
)

// plan is what an empty replica does.
type plan struct {
	cluster   string   // its id
	bootstrap []Member // begin the log with these; nil = the others have one
}

// form waits until it is clear whether this replica begins a cluster with its peers or comes into one.
func (g *group) form(ctx context.Context) (*plan, error) {
	nonce, err := g.store.dir.forming()
	if err != nil {
		return nil, err
	}
	g.serve()
	told := time.Now().Add(askEach - formTell)
	for {
		answers := g.ask()
		p, missing, err := g.decide(nonce, answers)
		if p != nil || err != nil {
			return p, err
		}
		if time.Since(told) > formTell {
			told = time.Now()
			g.logger.Info("waiting for the other replicas", "missing", missing)
		}
		select {
		case <-time.After(askEach):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the other replicas (%s): %w", missing, ctx.Err())
		}
	}
}

// decide says what the answers of the peers come to; without a plan, what is missing.
func (g *group) decide(nonce string, answers []Standing) (*plan, string, error) {
	self := g.store.options.Replica
	for _, s := range answers {
		if s.Empty || s.Cluster == "" {
			continue
		}
		if s.Level > g.options.LevelMax {
			return nil, "", fmt.Errorf("%w: cluster %s has feature level %d, this version knows %d; run the version that %s runs (%s) or a newer one",
				ErrOldProgram, s.Cluster, s.Level, g.options.LevelMax, s.ID, s.Version)
		}
		switch i := find(s.Members, self); {
		case i >= 0 && s.Members[i].Voter && !g.counted(s, nonce):
			return nil, "", fmt.Errorf("%w: %s of cluster %s says that %s votes, but this directory is empty and never did; start it under a new id (edge.id, in edge.cluster.peers too), and put that in its place: iopctl cluster replace %s NEW-ID ADDRESS",
				ErrLostDisk, s.ID, s.Cluster, self, self)
		case i >= 0:
			return &plan{cluster: s.Cluster}, "", nil
		case g.join(s) == nil:
			return &plan{cluster: s.Cluster}, "", nil
		}
		return nil, "the leader of " + s.Cluster + " to take this replica in", nil
	}
	return g.found(nonce, answers)
}

// counted tells whether this empty directory is the one that the others formed their cluster with.
func (g *group) counted(s Standing, nonce string) bool {
	nonces := strings.Split(s.Cluster, "-")
	list := slices.Clone(g.options.Peers)
	sortMembers(list)
	i := find(list, g.store.options.Replica)
	return len(nonces) == len(list) && i >= 0 && nonces[i] == nonce
}

// found forms a new cluster if all peers are there, empty, and agree on who they are.
func (g *group) found(nonce string, answers []Standing) (*plan, string, error) {
	self := g.store.options.Replica
	list := slices.Clone(g.options.Peers)
	sortMembers(list)
	nonces := make([]string, 0, len(list))
	var missing []string
	for i := range list {
		list[i].Voter = true
		if list[i].ID == self {
			nonces = append(nonces, nonce)
			continue
		}
		k := slices.IndexFunc(answers, func(s Standing) bool { return s.ID == list[i].ID })
		switch {
		case k < 0:
			missing = append(missing, list[i].ID)
		case !samePeers(answers[k].Members, list):
			missing = append(missing, list[i].ID+" (its cluster.peers differ)")
		case answers[k].Cluster == "":
			missing = append(missing, list[i].ID+" (starting)")
		default:
			nonces = append(nonces, answers[k].Cluster)
		}
	}
	if len(missing) > 0 {
		return nil, strings.Join(missing, ", "), nil
	}
	return &plan{cluster: strings.Join(nonces, "-"), bootstrap: list}, "", nil
}

func samePeers(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(x, y Member) bool { return x.ID == y.ID && x.Address == y.Address })
}

// serve lets the others ask this replica.
func (g *group) serve() {
	if g.options.Serve != nil && !g.promised.Swap(true) {
		g.options.Serve(g.store)
	}
}

// forming makes a new directory that of a replica which looks for its peers, and returns its nonce.
func (d *directory) forming() (string, error) {
	if d.identity.State == stateForming {
		return d.identity.Cluster, nil
	}
	b := make([]byte, nonceBytes)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("draw a nonce: %w", err)
	}
	d.mu.Lock()
	d.identity.Cluster, d.identity.State = hex.EncodeToString(b), stateForming
	d.mu.Unlock()
	return d.identity.Cluster, d.identity.write(d.path)
}

// become makes a new directory one of a cluster.
func (d *directory) become(cluster, state string) error {
	d.mu.Lock()
	d.identity.Cluster, d.identity.State = cluster, state
	d.fresh = false
	d.mu.Unlock()
	return d.identity.write(d.path)
}
