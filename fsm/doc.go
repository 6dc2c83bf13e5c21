// Package fsm is the machine: it decides who gets a slot.
//
// Commands go in, in the order of the log; outcomes and effects come out. The machine has no I/O, no clock, no
// goroutine, no randomness, no float and no dependence on map order, and it imports only the standard library, so the
// same entries give the same state, byte for byte, on every replica. Only storage applies entries to it; edged turns
// what it says into HTTP answers and frames to nodes. It never waits, never fails and never logs: a refusal is an
// outcome, a broken invariant panics.
//
// # Glossary
//
// One word has one meaning, from YAML to metric:
//
//   - edge: one edged replica. A session is one life of it; a new session of the same edge ends the old one.
//   - node: the identity of one noded, which owns providers. It has no capacity of its own.
//   - link: one connection between a node and an edge: pending, then ready, then gone; fenced while its leases still count.
//   - generation: a number per node, one higher with every accepted registration; it names one link for ever.
//   - provider: a resource under a node: capacity, long-context slots, priority, health.
//   - model: an external model key and its candidates: provider and served model name.
//   - class: normal, or long when the estimated input tokens reach long_context_threshold_tokens.
//   - request: one admission. It is a waiter (in the queue) or holds a lease (one slot of one provider), never both.
//   - enqueue number: a waiter's place, given once, kept through requeue and re-attachment.
//   - detached: a waiter whose session ended; it keeps its place and can be taken over, but not be granted.
//   - dispatchable: enabled, not draining, healthy, link of the owner's edge ready, a slot free (and a long one for long).
//   - live: as dispatchable, but may be full.
//   - recovering: not live, but expected: its link is pending, or the owner's session is in its startup grace.
//   - lane: the waiters of one session that have the same class and the same candidates, in order of enqueue number.
//   - settled: no waiter is dispatchable, and none is without a live or recovering candidate.
//
// Where next: machine.go (Apply), admit.go and queue.go (choice and order), node.go and link.go (fencing), session.go
// (exactly once), config.go (the configuration as state), check.go (the invariants).
package fsm
