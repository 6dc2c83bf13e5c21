package nodepb

// Protocol versions that this program speaks.
const (
	ProtocolMin = 1
	ProtocolMax = 1
)

// Header fields of a data exchange, in canonical form. A client's or backend's own fields of this prefix are dropped.
const (
	HeaderPrefix = "Iop-"

	// Of a request:
	HeaderRun        = "Iop-Run"
	HeaderLease      = "Iop-Lease"
	HeaderGeneration = "Iop-Generation"
	HeaderKind       = "Iop-Kind"
	HeaderProvider   = "Iop-Provider"
	HeaderAdapter    = "Iop-Adapter"
	HeaderServed     = "Iop-Served"
	HeaderTimeoutMS  = "Iop-Timeout-Ms" // what is left of the deadline; absent = none
	HeaderTrace      = "Iop-Trace"

	// Of an answer:
	HeaderLength = "Iop-Content-Length" // the backend's Content-Length; the exchange itself is chunked

	// Outcome: trailers after the last chunk, or headers of an answer that has no head of a backend.
	HeaderDispatched = "Iop-Dispatched" // yes, no, unknown; always there
	HeaderCode       = "Iop-Code"
	HeaderMessage    = "Iop-Message"
)

// Kinds of a data exchange.
const (
	KindTunnel = "tunnel" // bytes to and from the backend as they are
	KindRun    = "run"    // a normalised run: RunRequest in, events out
)
