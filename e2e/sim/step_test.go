package sim

import (
	"fmt"
	"math/rand/v2"
)

// op is a kind of step.
type op uint8

// The kinds. Each does nothing where it does not apply, so that any list of steps is a run, and a shorter one too.
const (
	opRound      op = iota // everything goes on a little, in order
	opAdmit                // a client comes
	opRetry                // a client whose request ended badly comes again
	opLeave                // a client goes
	opFinish               // a backend call ends well
	opBreak                // a backend call ends badly
	opNotRun               // a backend refuses
	opFlush                // an edge sends a batch
	opResend               // an edge sends again what has no outcome
	opCarry                // the network carries a message
	opLose                 // the network loses one
	opDouble               // the network carries one and keeps it
	opCommit               // the leader commits an entry
	opApply                // a replica applies entries
	opWait                 // time passes
	opWall                 // a wall clock jumps
	opSlow                 // the leader's clock runs at another speed
	opLead                 // another leader, what was on its way is lost or comes late
	opKillEdge             // an edge's process dies
	opOpenEdge             // an edge's process starts
	opEndSession           // an edge loses its session and lives
	opSnapshot             // a replica takes a snapshot
	opDial                 // a node dials an edge
	opNodeLoses            // a node finds a link dead
	opEdgeLoses            // an edge finds a link dead
	opDeafen               // a link dies one way
	opData                 // a data connection breaks
	opReport               // a node reports
	opLie                  // a node reports less, or more, than runs
	opKillNode             // a node's process dies
	opOpenNode             // a node's process starts
	opTwin                 // another process uses a node's name
	opHealth               // a provider's health changes
	opDrain                // an operator drains
	opConfig               // the configuration changes
	opStale                // words about an old life arrive
	opCollide              // a batch's number is used for other commands
	opBusy                 // the log refuses for a while
	opCut                  // a replica is parted from the others, or joined again
	opInstall              // a replica loses its disk and is given another's snapshot
	opUpgrade              // the level rises, an edge moves, the replicas compare themselves
	opStrand               // a node has one link, whose session ends while its edge lives, and dials the others
	opLag                  // a replica is slow to apply, for some rounds
	ops
)

var opNames = [ops]string{
	"round", "admit", "retry", "leave", "finish", "break", "not-run", "flush", "resend", "carry", "lose", "double", "commit",
	"apply", "wait", "wall", "slow", "lead", "kill-edge", "open-edge", "end-session", "snapshot", "dial", "node-loses",
	"edge-loses", "deafen", "data", "report", "lie", "kill-node", "open-node", "twin", "health", "drain", "config", "stale", "collide", "busy", "cut", "install", "upgrade", "strand", "lag",
}

// step is one thing that happens; what a, b and c mean is up to its op.
type step struct {
	op      op
	a, b, c uint16
}

func (s step) String() string { return fmt.Sprintf("%s(%d,%d,%d)", opNames[s.op], s.a, s.b, s.c) }

// usual is how often a kind comes, of all.
var usual = [ops]int{
	opRound: 90, opAdmit: 45, opRetry: 16, opLeave: 8, opFinish: 24, opBreak: 3, opNotRun: 6, opFlush: 10, opResend: 4, opCarry: 30, opLose: 4,
	opDouble: 4, opCommit: 12, opApply: 8, opWait: 9, opWall: 1, opSlow: 1, opLead: 1, opKillEdge: 1, opOpenEdge: 6, opEndSession: 1,
	opSnapshot: 2, opDial: 8, opNodeLoses: 2, opEdgeLoses: 2, opDeafen: 2, opData: 2, opReport: 5, opLie: 1, opKillNode: 1, opOpenNode: 8,
	opTwin: 1, opHealth: 2, opDrain: 1, opConfig: 2, opStale: 2, opCollide: 1, opBusy: 1,
	opCut: 5, opInstall: 1, opUpgrade: 4, opStrand: 2, opLag: 3,
}

// steps gives the run of a seed. Each seed does without some kinds of faults and has more of others, so that long chains
// of one kind come up too.
func steps(seed uint64, n int) []step {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var bag []op
	for o, weight := range usual {
		switch k := op(o); {
		case k == opRound || k == opAdmit || k == opFinish || k == opCarry || k == opDial || k == opOpenEdge || k == opOpenNode:
		case rnd.IntN(4) == 0:
			weight = 0
		case rnd.IntN(5) == 0:
			weight *= 4
		}
		for range weight {
			bag = append(bag, op(o))
		}
	}
	out := make([]step, n)
	for i := range out {
		out[i] = step{bag[rnd.IntN(len(bag))], uint16(rnd.Uint32()), uint16(rnd.Uint32()), uint16(rnd.Uint32())}
	}
	return out
}
