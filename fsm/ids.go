package fsm

// Ids are types of their own so that the compiler catches swaps.
type (
	// EdgeID names an edged replica, from its configuration.
	EdgeID string
	// NodeID names a noded, from its configuration.
	NodeID string
	// ProviderID names a provider; unique over all nodes.
	ProviderID string
	// ModelID is an external model key.
	ModelID string
	// RequestID names one admission: chosen by the edge, or derived from principal and Idempotency-Key. At most
	// RequestIDMax bytes.
	RequestID string
	// PrincipalID names someone whose requests these are, from the configuration; "" = nobody in particular.
	PrincipalID string
	// SessionID is the index of the log entry that opened the session, or the next number that was never given if an
	// entry opened several; 0 is no session.
	SessionID uint64
	// LeaseID counts leases from 1 over the life of the cluster.
	LeaseID uint64
	// Generation counts accepted registrations of one node from 1.
	Generation uint64
	// Revision counts applied configurations from 1; 0 is none yet.
	Revision uint64
	// Enqueue is a request's place in the one queue, given at its first admission; lower is earlier.
	Enqueue uint64
	// Time is cluster time, or a span of it, in nanoseconds. It stands still while there is no leader and is never
	// read from a wall clock.
	Time int64
	// Fingerprint is a hash of principal, route and body; the zero value matches nothing.
	Fingerprint [16]byte
)

// RequestIDMax is the longest RequestID in bytes; a longer one is refused as malformed.
const RequestIDMax = 128

// NameMax is the longest Principal and Token in bytes; a request with a longer one is refused as malformed.
const NameMax = 256

// Units of Time.
const (
	Microsecond Time = 1000
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Class is the kind of slot that a request needs.
type Class uint8

// The classes. A long request takes one normal and one long slot together.
const (
	ClassNormal Class = iota
	ClassLong
)

func (c Class) String() string {
	if c == ClassLong {
		return "long"
	}
	return "normal"
}

// Needs is a set of capabilities that a request demands of a provider.
type Needs uint32

// Capabilities. A provider that lacks a needed one is no candidate.
const (
	NeedChat Needs = 1 << iota
	NeedCompletions
	NeedEmbeddings
	NeedTunnel // takes any OpenAI-shaped route as bytes
)

// AllNeeds is what an OpenAI-compatible backend can do.
const AllNeeds = NeedChat | NeedCompletions | NeedEmbeddings | NeedTunnel
