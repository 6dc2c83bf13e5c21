// Package peerlink is an edge's link to the other replicas of its cluster: one port, TLS with certificates on both
// sides, two kinds of connections on it.
//
//	            ┌ ALPN h2 ───────── gRPC: Forward (batches to the leader), Standing, ReadIndex, Join, Ping
//	TCP ── TLS ─┤
//	            └ ALPN iop-raft/1 ─ preamble, then raft's own
//
// Who speaks is proved by the certificate: one of its DNS names must be the replica's id, or the id and a dot and
// anything. Every connection and every call says who means whom and in which cluster (Hello), and is refused with its
// cause if that is wrong: so nobody talks to himself, to another replica that now has the address, or to another
// cluster. In plain text, for loopback and trusted networks, the Hello is believed.
//
// It never looks into a batch and never decides anything: what comes in goes to the Host. Each peer has a connection of
// its own, so one that is slow or gone holds up nobody else; one that stops answering is noticed by pings.
//
// The edge joins it with the store (edged/cluster.go). network.go is where to begin, then door.go (what comes in),
// peer.go and lane.go (what goes out), identity.go (who may), tls.go.
package peerlink
