// Package wire tests both ends of the wire between edge and node together: edged/nodelink and noded/edgelink over real
// sockets, with a real machine that decides and a node's hands that each test plays itself.
package wire
