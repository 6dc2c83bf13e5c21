// Package noded is the daemon beside the backends: the hands of the gateway.
//
// cmd/noded (and iopctl dev) builds a Daemon and calls Run. It keeps a link to every edge of its file (edgelink), turns
// the configuration that comes over a link into adapters (adapter) with a gate each (gate), runs what the edges send,
// and tells them when a backend is not well. It queues nothing, retries nothing and decides nothing about who goes
// first: that is the machine's, at the edge.
//
// Where next: daemon.go (wiring, start and stop), hands.go (one run), registry.go (adapters and their change),
// monitor.go and watch.go (health).
package noded
