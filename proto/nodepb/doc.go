// Package nodepb is the wire between edges and nodes, for both ends.
//
// The control plane is gRPC: the frames of node.proto, generated here. The data plane is written by hand: connections
// that a node dials to the same listener, proved by a handshake (handshake.go), each carrying one HTTP/1.1 exchange at a
// time in the reverse direction, edge to node (data.go, head.go, chunk.go). edged/nodelink and noded/edgelink are its
// only users; it knows nothing of either.
//
// Regenerate with `make proto`.
package nodepb
