// Package peerpb is the wire between the replicas of a cluster, for both ends.
//
// One port carries two kinds of connections: gRPC (peer.proto, generated here) and raft's own, which begin with a
// preamble written by hand (hello.go). Under TLS they are told apart by ALPN, in plain text by their first bytes.
// edged/peerlink is the only user; peerpb knows nothing of it, nor of what a batch contains.
//
// Regenerate with `make proto`.
package peerpb
