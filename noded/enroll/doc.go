// Package enroll makes a machine a node: it exchanges a join token for a node's name, and writes the node file.
//
// The machine makes its own token and shows the edge only the hash. The token is on disk before it asks (in a file beside the
// node file), so that a machine that lost the answer, or was killed, asks again with the same hash and hears the same.
// cmd/noded (noded join) calls it; it starts nothing and speaks to no backend.
//
// Where next: join.go (the steps), ask.go (the exchange), file.go (what is written).
package enroll
