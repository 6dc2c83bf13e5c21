// Package sim runs whole clusters in one process under virtual time and breaks them: many edges, nodes, clients and
// backends around the real machine (fsm), the real encoding of log and snapshots (storage) and the real admission.
// Consensus, the network, nodes and backends are models that lose, delay, repeat and reorder what they carry, die, lie
// and come back. It is all tests; nobody imports it.
//
// A run is a list of steps that a seed gives (step_test.go). After each entry of the log an observer that knows the
// rules but not the code (observe_test.go) looks at the machine, and at each start of a call it counts what really runs
// at the backend (backend_test.go). Then the faults stop, and everything has to come to its end (end_test.go). A run that fails is
// made shorter while it fails the same way, and printed with its seed (shrink_test.go).
//
//	world_test.go    all there is, and how a step is carried out
//	log_test.go      the log and its leader: batches in, entries out; cluster time
//	quorum_test.go   partitions, elections, sessions that the leader ends, new members
//	edge_test.go     an edge: its replica, its session's batches, its process
//	client_test.go   requests through the real admission
//	place_test.go    what clients were told of their places
//	link_test.go     connections between edges and nodes, as edged/nodelink and noded/edgelink command and answer
//	node_test.go     nodes, what runs on them
//	mutant_test.go   rules changed for the worse, each of which a run has to notice
package sim
