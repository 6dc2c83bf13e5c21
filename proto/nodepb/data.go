package nodepb

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// HeadMax bounds the head of a data exchange in bytes.
const HeadMax = 256 << 10

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
	HeaderRevision   = "Iop-Revision"   // of the configuration that the run needs; absent = any
	HeaderTimeoutMS  = "Iop-Timeout-Ms" // what is left of the deadline; absent = none
	HeaderTrace      = "Iop-Trace"      // W3C traceparent, as the edge decided; a tracestate travels as the client's own field
	HeaderRequest    = "Iop-Request"    // the request's id as its client knows it, for logs

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

// ErrMalformed is what the readers return for bytes that are no data exchange, and AppendRequest for a request that
// can't be one (a path with spaces, say).
var ErrMalformed = errors.New("malformed data exchange")

// ErrHeadTooLarge is what readers and AppendRequest return for a head beyond HeadMax.
var ErrHeadTooLarge = errors.New("head of data exchange is larger than 256 KiB")

// appendFields adds what of h travels end to end: not the fields that belong to one hop (RFC 9110 7.6.1), not those
// that the exchange sets itself, none that would break the framing.
func appendFields(b []byte, h http.Header) []byte {
	for key, values := range h {
		if ownField(key) || !token(key) {
			continue
		}
		for _, v := range values {
			if clean(v) {
				b = appendField(b, key, v)
			}
		}
	}
	return b
}

func appendField(b []byte, key, value string) []byte {
	b = append(b, key...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

func appendNumber(b []byte, key string, n uint64) []byte {
	b = append(b, key...)
	b = append(b, ": "...)
	b = strconv.AppendUint(b, n, 10)
	return append(b, "\r\n"...)
}

// appendText adds a field of ours whose value may be anything: what would break the line becomes a space.
func appendText(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	if !clean(value) {
		value = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, value)
	}
	return appendField(b, key, value)
}

func ownField(key string) bool {
	switch key {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Expect":
		return true
	}
	return strings.HasPrefix(key, HeaderPrefix)
}

// token tells whether s can be a field's name or a method (RFC 9110 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// clean tells whether s can be a field's value: no control character but tab.
func clean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
