package fsm

// Code is the kind of an outcome.
type Code uint8

// The codes.
const (
	CodeNone          Code = iota
	Granted                // Grant is set
	Queued                 // Position and Enqueue are set
	Refused                // Refusal is set
	Removed                // a waiter was taken out of the queue
	Holds                  // the request holds a lease: Grant is set
	Unknown                // no such request, provider or node
	Returned               // the lease was given back
	AlreadyReleased        // it had been given back before, never was this edge's, or is the node's to end: its link was lost
	SessionOpened          // Session is set
	Registered             // Generation, Revision and Counted are set
	Done                   // it took effect
	Stale                  // it named a generation, session or term that is not current: nothing changed
	Applied                // Revision is set
	SessionEnded           // the batch's session is not current: nothing changed
	SequenceGap            // an earlier batch of the session is missing: nothing changed, send that one first
	SequenceForgotten      // the batch was acknowledged before: nothing changed
	SequenceCollision      // the same Seq carried other commands: nothing changed
	Joined                 // the join token was used: Grant.Node names the node
)

var codeNames = [...]string{
	"none", "granted", "queued", "refused", "removed", "holds", "unknown", "returned", "already_released",
	"session_opened", "registered", "done", "stale", "applied", "session_ended", "sequence_gap", "sequence_forgotten",
	"sequence_collision", "joined",
}

func (c Code) String() string { return nameOf(codeNames[:], int(c)) }

// Refusal says why something was refused. Names are stable.
type Refusal uint8

// The refusals.
const (
	RefusalNone                Refusal = iota
	RefusalModelNotFound               // model_not_found
	RefusalQueueFull                   // queue_full
	RefusalUnavailable                 // unavailable: no live or recovering candidate
	RefusalContextTooLong              // context_too_long: for every candidate
	RefusalDraining                    // draining: all live candidates are being drained
	RefusalInProgressElsewhere         // in_progress_elsewhere: the request id is taken
	RefusalQueueTimeout                // queue_timeout: waited past its deadline
	RefusalAbandoned                   // abandoned: detached and never taken over
	RefusalUnknownNode                 // unknown_node: not in the configuration
	RefusalDuplicate                   // duplicate: the node has a living link here or another process uses its name
	RefusalConflict                    // conflict: the expected revision is not the current one
	RefusalMalformed                   // malformed: an id is empty or too long
	RefusalUnsupported                 // unsupported: no candidate has the needed capability
	RefusalUnknownToken                // unknown_token: no such join token, or another used it
	RefusalExpired                     // expired: the join token ran out before it was used
	RefusalTooMany                     // too_many: JoinsMax join tokens are kept
	RefusalPrincipalLimit              // principal_limit: as many requests of its principal wait as may, or it cannot wait
	RefusalStoreFull                   // store_full: responses that have not ended leave no room
	RefusalLost                        // lost: a background response's run was lost ResponseLostMax times
	RefusalEvicted                     // canceled_by_operator
)

var refusalNames = [...]string{
	"none", "model_not_found", "queue_full", "unavailable", "context_too_long", "draining", "in_progress_elsewhere",
	"queue_timeout", "abandoned", "unknown_node", "duplicate", "conflict", "malformed", "unsupported",
	"unknown_token", "expired", "too_many", "principal_limit", "store_full", "lost",
	"canceled_by_operator",
}

func (r Refusal) String() string { return nameOf(refusalNames[:], int(r)) }

// Grant tells which slot a request got.
type Grant struct {
	Lease      LeaseID
	Request    RequestID
	Model      ModelID
	Class      Class
	Provider   ProviderID
	Node       NodeID
	Generation Generation
	Served     string // the model's name at the provider
}

// Outcome answers one command.
type Outcome struct {
	Code       Code
	Refusal    Refusal
	Grant      Grant
	Position   int // place in the queue, from 1; 0 = its old place, which takes a read to number
	Enqueue    Enqueue
	Session    SessionID
	Generation Generation
	Revision   Revision
	Counted    []LeaseID // of RegisterNode's Running, those that the machine counts: held ones, and those behind a fence
	Count      int
}

// EffectKind is the kind of an effect.
type EffectKind uint8

// The effects.
const (
	// EffectGranted: a waiter got a slot; Grant is set.
	EffectGranted EffectKind = iota + 1
	// EffectEnded: a waiter left the queue without a slot; Request and Refusal are set.
	EffectEnded
	// EffectReturned: a lease was returned by something other than its Release; Grant and Reason are set.
	EffectReturned
	// EffectLinkFenced: a link is gone; Node, Generation and Reason are set.
	EffectLinkFenced
	// EffectSessionEnded: Session ended; Edge and Reason are set.
	EffectSessionEnded
	// EffectConfig: the configuration changed; Revision is set. Addressed to no one.
	EffectConfig
	// EffectUnwanted: the response that a lease is for has ended, or was forgotten: its run is to be ended; Grant is set.
	EffectUnwanted
	// EffectDrained: an operator drains a node that has a link to Session, or one of its providers, or allows it again;
	// Node, Provider ("" = all of the node) and On are set.
	EffectDrained
)

// Effect is a later consequence for a request or link, addressed to the session that owns it.
type Effect struct {
	Kind       EffectKind
	Session    SessionID // addressee; for EffectConfig 0
	Edge       EdgeID
	Request    RequestID
	Grant      Grant
	Refusal    Refusal
	Reason     Reason
	Node       NodeID
	Generation Generation
	Revision   Revision
	Provider   ProviderID
	On         bool
}

// Result is what one entry brought about.
type Result struct {
	// Outcomes has, per batch of the entry, one outcome per command. It must not be modified.
	Outcomes [][]Outcome
	// Effects are in the order in which they happened. It is valid until the next Apply.
	Effects []Effect
	// Checks are the digest checks that the entry carried, for the replica to compare with the digests of its own machine
	// at their indexes. It is valid until the next Apply.
	Checks []DigestCheck
	// Writes are for the vault, in order. It is valid until the next Apply.
	Writes []Write
}
