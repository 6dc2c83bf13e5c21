package fsm

// Entry is one entry of the log: what a leader proposed in one go.
type Entry struct {
	Index   uint64 // of the log, from 1, growing
	Term    uint64 // of the leader that proposed it
	Elapsed Time   // cluster time, stamped by the leader; never falls (a lower one counts as the last)
	Wall    int64  // wall clock in Unix nanoseconds, for people; no decision uses it
	Batches []Batch
}

// Batch is a group of commands that one session proposed together; they are applied in order.
type Batch struct {
	// Session is the proposer; 0 for what belongs to no session: OpenSession, EndSession, Expire.
	Session SessionID
	// Seq counts the batches of a session from 1 without gap. A batch seen before answers with its stored outcomes.
	Seq uint64
	// AckBelow tells that the session has all outcomes below it, so that the machine can forget them.
	AckBelow uint64
	// Sum is a hash of the commands: the same Seq with another Sum is a collision and is refused.
	Sum      uint64
	Commands []Command
}

// Command is something that can change the machine. The set is closed: a changed behaviour is a new kind.
type Command interface{ command() }

type (
	// OpenSession begins a life of an edge and ends the one before. The same nonce again answers with the same session.
	// Outcome: SessionOpened.
	OpenSession struct {
		Edge  EdgeID
		Nonce uint64 // random, not 0
	}

	// EndSession ends a session: fences its links, detaches its waiters. Outcome: Done, or Stale if it is not current.
	EndSession struct {
		Edge    EdgeID
		Session SessionID
		Reason  Reason
		// Alive says that the edge may live, and its transports carry on what runs. Then the leases stay counted until the
		// nodes report or the fence timeout is over, also those of a node that has no other link: it may register anew.
		Alive bool
		// Apart says of an edge with Alive that its leases stay counted so long even when the last other link of their node
		// goes meanwhile.
		Apart bool
		// Since is the cluster time since when nobody has heard of the edge, or earlier; 0 = unknown. Waiters that came
		// since then elsewhere, with the same request as one of the session, are taken for its client and have its place.
		Since Time
	}

	// Admit asks for a slot. Outcome: Granted, Queued or Refused.
	Admit struct {
		Request     RequestID
		Fingerprint Fingerprint
		Model       ModelID
		Class       Class
		InputTokens int64 // estimated; 0 = unknown
		Needs       Needs
		// MaxWait shortens the queue timeout for this request; 0 = as configured.
		MaxWait Time
		// Provider addresses one provider, which must be unlimited, beside the queue: Granted or Refused, never Queued.
		// "" = the model's candidates.
		Provider ProviderID
		Served   string // with Provider: the model's name there, may be ""
		// Principal and Token tell whose request it is. The principal's limits hold for it.
		Principal PrincipalID
		Token     string // token_ref
		Metered   bool   // its run is counted in the ledger
		// Place is the one that a waiter of this edge had before its session ended. It gets that again, whatever MaxQueue
		// is, if nobody is known by the id and nobody has the place; and if it was granted a lease meanwhile, of which this
		// edge has not heard, that one goes back first. 0 = none.
		Place Enqueue
	}

	// Cancel takes a request out of the queue. Outcome: Removed, Holds (it has a lease, which stays), or Unknown.
	Cancel struct{ Request RequestID }

	// Release gives a lease back. Outcome: Returned, AlreadyReleased; with Requeue: Granted, Queued or Refused for the
	// same request at its old place, without this provider.
	Release struct {
		Lease   LeaseID
		Reason  Reason
		Requeue bool
		Usage   Usage // of a metered run that ends
		// Unsent says of one with Requeue that the edge never dispatched it. So its provider stays a candidate, and it goes
		// back to its place even if its link or the session that it was granted to is gone.
		Unsent bool
	}

	// Evict takes a waiter out of the queue for an operator, whosever it is; its session hears of it (EffectEnded).
	// Outcome: Removed, Holds (it has a lease, which stays) or Unknown.
	Evict struct{ Request RequestID }

	// RegisterNode begins a link between a node and the session's edge. Outcome: Registered or Refused.
	RegisterNode struct {
		Node     NodeID
		Instance uint64 // random per noded process, not 0
		// Supersede names the generation of an old link on this edge that was found dead; 0 = none.
		Supersede Generation
		// Running are the leases whose backend calls have not ended on the node, over whichever link.
		Running []LeaseID
	}

	// NodeReady tells that a link's node holds the configuration and runs nothing that the machine does not count.
	// Outcome: Done or Stale.
	NodeReady struct {
		Node       NodeID
		Generation Generation
	}

	// LinkLost fences a link. Outcome: Done or Stale.
	LinkLost struct {
		Node       NodeID
		Generation Generation
		Reason     Reason
	}

	// LinkReport is the node's word on a fenced generation: leases not named have ended. Outcome: Done or Stale.
	LinkReport struct {
		Node       NodeID
		Generation Generation
		Running    []LeaseID
	}

	// SetHealth tells a provider's health as its node sees it over a current link. Outcome: Done or Stale.
	SetHealth struct {
		Node       NodeID
		Generation Generation
		Provider   ProviderID
		Health     Health
		Cause      string // for people; at most CauseMax bytes are kept
	}

	// Drain stops (or allows again) new leases on a provider, or on all of a node if Provider is empty.
	// Every session with a link to the node hears of it (EffectDrained). Outcome: Done, or Unknown.
	Drain struct {
		Node     NodeID
		Provider ProviderID
		On       bool
	}

	// ApplyConfig replaces the configuration. Outcome: Applied, or Refused(RefusalConflict) with the current revision.
	ApplyConfig struct {
		Document []byte // canonical bytes of the cluster part; opaque here, holds no secret
		Config   Config // what admission needs of it
		Expected Revision
		Force    bool // ignore Expected
		// Edge and Offer record which file an edge offered last (docs/SEMANTICS.md 1.8); Offer is a hash, "" = not an offer.
		Edge  EdgeID
		Offer string
	}

	// Expire ends what is overdue at the entry's time, at most ExpireMax ends; ignored if Term is not the entry's.
	// Outcome: Done (Count = ends) or Stale.
	Expire struct{ Term uint64 }
)

// CauseMax is how many bytes of a health cause the machine keeps.
const CauseMax = 200

// ExpireMax is how many ends one Expire can make.
const ExpireMax = 500

func (*OpenSession) command()  {}
func (*EndSession) command()   {}
func (*Admit) command()        {}
func (*Cancel) command()       {}
func (*Release) command()      {}
func (*Evict) command()        {}
func (*RegisterNode) command() {}
func (*NodeReady) command()    {}
func (*LinkLost) command()     {}
func (*LinkReport) command()   {}
func (*SetHealth) command()    {}
func (*Drain) command()        {}
func (*ApplyConfig) command()  {}
func (*Expire) command()       {}

// Reason tells why a lease was returned or a link was lost.
type Reason uint8

// The reasons. Their names are stable: metrics and records carry them.
const (
	ReasonNone         Reason = iota
	ReasonDone                // the run ended as it should
	ReasonCanceled            // the client left
	ReasonBackendError        // the backend failed during the run
	ReasonNotRun              // the backend provably did not run it
	ReasonTimeout             // a bound on the run was reached
	ReasonNeverSent           // the edge never dispatched it
	ReasonLinkLost            // its link was lost
	ReasonFenceTimeout        // its fenced link said nothing for fence_timeout_ms
	ReasonReported            // the node reported that it no longer runs
	ReasonSessionEnded        // the edge's session ended
	ReasonSuperseded          // a newer link took the place of its link
	ReasonGoodbye             // an orderly stop
	ReasonHeartbeat           // heartbeats were missed
	ReasonRemoved             // the configuration no longer has it
)

var reasonNames = [...]string{
	"none", "done", "canceled", "backend_error", "not_run", "timeout", "never_sent", "link_lost", "fence_timeout",
	"reported", "session_ended", "superseded", "goodbye", "heartbeat", "removed",
}

func (r Reason) String() string { return nameOf(reasonNames[:], int(r)) }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
