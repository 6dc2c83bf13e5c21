// Package storage puts the machine on disk: it orders commands in a log, applies them, and says what came of them.
//
// edged opens one Store per process; admission, links and configuration propose commands through a Session, and get
// each outcome once, in the order of the log, after it is on disk. cli reads a stopped replica's directory with
// Inspect. What admits whom is decided in package fsm; nothing here looks into a command further than its kind.
//
// # Life of a command
//
//	Session.Propose  encodes it into the session's open batch                    batch.go, queue.go
//	forwarder        if another replica leads: brings it there                   forward.go, foreign.go
//	batcher          takes all that is queued as one entry, one entry in flight  batcher.go
//	consensus        replicates and writes it (fsync)                            consensus.go, raft.go, guard.go
//	replica          decodes it and applies it to the machine                    replica.go, entry.go
//	dispatcher       calls the receivers, then the sessions' effects             dispatch.go
//
// The types of hashicorp/raft stay in raft.go, transport.go, notify.go, guard.go, snapstore.go, slog.go and what is about
// members; the rest knows the interface consensus, which a simulator can implement as well. Files on disk: directory.go;
// their formats: identity.go, entry.go, snapshot.go, snapstore.go; what makes sure that they are whole and belong
// together: seal.go, pages.go, binding.go.
//
// # Replicas
//
// With Options.Cluster a store is, or can become, one of several. peers.go has what it needs of the network (edged
// makes it of package peerlink), form.go the first start, members.go and change.go who is in, seats.go how they stand,
// forward.go how commands get to the leader, notify.go how followers hear of commits at once, read.go linearizable
// reads, notice.go when a silent leader is noticed, lost.go when a replica's session is ended, installed.go snapshots
// of the leader, check.go and verify.go whether all states are the same, level.go which commands all of them
// understand. An outcome always comes from the replica's own machine, so that leader, follower and replay are one path.
// backup.go writes a state to a file, rebuild.go makes the directory of a new cluster of one, from that or from a survivor.
//
// A write that fails or hangs ends the store (Failed): after a failed fsync nothing may be assumed of the file, so
// nothing is acknowledged any more and the process has to end and open the directory anew.
package storage
