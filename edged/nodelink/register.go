package nodelink

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// runningMax bounds the leases that one registration may name.
const runningMax = 1 << 16

// check tells whether the node may register at all: known, with the right token, in a protocol that both speak.
func (l *Links) check(reg *nodepb.Register) (NodeEntry, *nodepb.Refused) {
	if reg.ProtocolMin > nodepb.ProtocolMax || reg.ProtocolMax < nodepb.ProtocolMin {
		return NodeEntry{}, refuse("protocol_version",
			fmt.Sprintf("the node speaks protocol %d to %d, this edge %d to %d", reg.ProtocolMin, reg.ProtocolMax, nodepb.ProtocolMin, nodepb.ProtocolMax),
			"install versions of noded and edged that have a protocol in common")
	}
	if reg.Node == "" || len(reg.Node) > fsm.RequestIDMax || (reg.Instance == 0 && !reg.Check) || len(reg.Running) > runningMax {
		return NodeEntry{}, refuse("malformed", "the registration names no node or no instance, or too much", "use an unchanged noded of this project")
	}
	entry, known := l.o.Catalog.Node(fsm.NodeID(reg.Node))
	right := tokenMatches(sha256.Sum256([]byte(reg.Token)), entry.TokenSHA256)
	switch {
	case !known:
		return entry, refuse("unknown_node", fmt.Sprintf("the configuration has no node %q", reg.Node),
			"add it under nodes in the edge's configuration, or correct the node's id")
	case !right && entry.TokenSHA256 == "":
		return entry, refuse("wrong_token", fmt.Sprintf("node %q has no token yet", reg.Node), "let it join: iopctl nodes token "+reg.Node)
	case !right:
		return entry, refuse("wrong_token", fmt.Sprintf("the token of node %q is not the configured one", reg.Node),
			"set the node's token to the one whose SHA-256 stands in the edge's nodes[].token_hash_sha256 (iopctl tokens hash), or let it join anew (iopctl nodes token)")
	case l.stopping():
		r := refuse("stopping", "the edge stops", "none needed: the node tries again")
		r.RetryAfterMs = uint64(l.o.GoodbyeRetryAfter / time.Millisecond)
		return entry, r
	}
	return entry, nil
}

// tokenMatches compares hashes in constant time.
func tokenMatches(sum [32]byte, wantHex string) bool {
	want, err := hex.DecodeString(strings.TrimSpace(wantHex))
	if err != nil || len(want) != len(sum) {
		want = make([]byte, len(sum))
	}
	return subtle.ConstantTimeCompare(sum[:], want) == 1
}

func refuse(code, message, cure string) *nodepb.Refused {
	return &nodepb.Refused{Code: code, Message: message, Cure: cure}
}

// register takes the node in, or says why not. call is the node's call; life outlives it, because a registration that
// the machine may have made has to be followed to its outcome.
func (l *Links) register(life, call context.Context, reg *nodepb.Register, entry NodeEntry, conn *controlConn) (*link, *nodepb.Refused) {
	node := fsm.NodeID(reg.Node)
	turn := l.turn(node)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-call.Done():
		return nil, refuse("unavailable", "the node left before its turn", "none needed: the node tries again")
	}
	old, supersede := l.previous(node)
	if old != nil && old.instance != reg.Instance && old.alive() {
		return nil, duplicate(node)
	}
	running := make([]fsm.LeaseID, len(reg.Running))
	for i, id := range reg.Running {
		running[i] = fsm.LeaseID(id)
	}
	out, err := l.o.Commands.Do(life, &fsm.RegisterNode{Node: node, Instance: reg.Instance, Supersede: supersede, Running: running})
	switch {
	case err != nil:
		return nil, refuse("unavailable", fmt.Sprintf("the registration could not be recorded: %v", err), "look at the edge's log; the node tries again")
	case out.Code == fsm.Refused && out.Refusal == fsm.RefusalDuplicate:
		return nil, duplicate(node)
	case out.Code == fsm.Refused:
		return nil, refuse(out.Refusal.String(), fmt.Sprintf("the cluster does not take node %q: %s", reg.Node, out.Refusal),
			"check that the applied configuration has the node")
	case out.Code != fsm.Registered:
		return nil, refuse("unavailable", "the edge has no session: "+out.Code.String(), "none needed: the node tries again")
	}
	secret := make([]byte, nodepb.SecretLen)
	_, _ = rand.Read(secret) // never fails, says its documentation
	k := newLink(l, reg, out.Generation, conn, secret)
	k.pool.busy = map[*dataConn]struct{}{}
	if newer, ok := l.o.Catalog.Node(node); ok {
		entry = newer // it may have changed while the registration was written
	}
	k.began = entry.Revision
	k.holds(entry.Revision, entry.Payload)
	k.send(l.accepted(k, out, entry))
	l.insert(k)
	l.tellFenced(k)
	if f := l.members(); f != nil {
		k.send(f)
	}
	l.o.Logger.Info("link: accepted", "node", node, "generation", out.Generation, "remote", conn.Conn.RemoteAddr().String(),
		"version", reg.Version, "platform", reg.Platform, "running", len(running), "counted", len(out.Counted))
	return k, nil
}

func duplicate(node fsm.NodeID) *nodepb.Refused {
	return refuse("duplicate", fmt.Sprintf("node %q is already connected, from another process, and that one answers", node),
		"stop the other noded that uses this id, or give this one an id of its own")
}

// turn is held by the one registration of a node that is in progress.
func (l *Links) turn(node fsm.NodeID) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.regs[node]
	if t == nil {
		t = make(chan struct{}, 1)
		l.regs[node] = t
	}
	return t
}

// previous returns the node's link in being, if any, and the newest generation known here: a loss of it that is still
// to be commanded is overtaken by the registration.
func (l *Links) previous(node fsm.NodeID) (*link, fsm.Generation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.links[node], l.last[node]
}

func (l *Links) accepted(k *link, out fsm.Outcome, entry NodeEntry) *nodepb.EdgeFrame {
	counted := make([]uint64, len(out.Counted))
	for i, id := range out.Counted {
		counted[i] = uint64(id)
	}
	return &nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Accepted{Accepted: &nodepb.Accepted{
		Generation: uint64(out.Generation), Counted: counted,
		Revision: entry.Revision, Payload: entry.Payload,
		HeartbeatIntervalMs: uint64(max(1, l.o.HeartbeatInterval/time.Millisecond)), HeartbeatMissed: uint32(l.o.HeartbeatMissed),
		Secret: k.secret, Protocol: nodepb.ProtocolMax,
		Edge: string(l.o.Edge), Cluster: l.o.ClusterID,
		BodyMaxBytes: uint64(l.o.MaxBodyBytes), SpareConnections: uint32(l.o.SpareConnections),
	}}}
}
