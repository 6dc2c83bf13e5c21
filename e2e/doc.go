// Package e2e looks at the whole system from outside: edged, noded and iopctl as processes on free ports, real sockets,
// signals, and a directory of data that is inspected afterwards.
//
// A test builds a world (world_test.go), which writes the files, starts the processes and, at the end of a test that
// has not failed, demands an orderly end: idle counters, exit code 0, no process left, and a data directory whose
// invariants hold. Backends are those of e2e/backend unless the test is about a real one; e2e/cut breaks connections.
// Nothing sleeps in order to synchronise: await waits for a named fact.
//
// Environment: E2E_RACE=1 builds the daemons with the race detector, E2E_LONG=1 runs more rounds, E2E_SEED=N repeats a
// random run. IOP_LLAMA_SERVER and IOP_LLAMA_MODEL name a real llama-server and its counting model.
// E2E_CLIENTS=1 makes it a failure that clients can't be installed from npm.
package e2e
