package peerpb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"
)

// The protocol of this version. Replicas with the same major speak with each other; a higher minor only adds.
const (
	ProtocolMajor = 1
	ProtocolMinor = 0
)

// Names that TLS negotiates (ALPN) for the two kinds of connections.
const (
	ALPNCalls = "h2"
	ALPNRaft  = "iop-raft/1"
)

// The first PrefaceLen bytes of a connection, under TLS those inside it.
const (
	PrefaceLen   = 6
	CallsPreface = "PRI * " // the beginning of HTTP/2's preface: gRPC
	RaftPreface  = "RAFT/1"
)

// HelloKey is the metadata key of an encoded Hello.
const HelloKey = "iop-hello-bin"

// HelloMax bounds an encoded Hello or HelloAnswer, in bytes.
const HelloMax = 1024

// ErrMalformed says that bytes are not what the protocol has at this place.
var ErrMalformed = errors.New("malformed")

// A raft connection begins so; all that follows is raft's:
//
//	dialler:  "RAFT/1" | length, 2 bytes big endian | Hello
//	acceptor:            length, 2 bytes big endian | HelloAnswer

// WriteHello begins a raft connection.
func WriteHello(w io.Writer, h *Hello) error { return write(w, RaftPreface, h) }

// WriteHelloAnswer answers a Hello.
func WriteHelloAnswer(w io.Writer, a *HelloAnswer) error { return write(w, "", a) }

// ReadHello reads what follows RaftPreface, and not a byte more.
func ReadHello(r io.Reader) (*Hello, error) {
	h := &Hello{}
	if err := read(r, h); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	return h, nil
}

// ReadHelloAnswer reads the answer to a Hello, and not a byte more.
func ReadHelloAnswer(r io.Reader) (*HelloAnswer, error) {
	a := &HelloAnswer{}
	if err := read(r, a); err != nil {
		return nil, fmt.Errorf("answer to hello: %w", err)
	}
	return a, nil
}

// ParseHello decodes a Hello that came as metadata.
func ParseHello(b []byte) (*Hello, error) {
	if len(b) > HelloMax {
		return nil, fmt.Errorf("hello: %w: %d bytes", ErrMalformed, len(b))
	}
	h := &Hello{}
	if err := proto.Unmarshal(b, h); err != nil {
		return nil, fmt.Errorf("hello: %w: %w", ErrMalformed, err)
	}
	return h, nil
}

func write(w io.Writer, preface string, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode hello: %w", err)
	}
	if len(body) > HelloMax {
		return fmt.Errorf("encode hello: %d bytes, more than %d", len(body), HelloMax)
	}
	b := append(make([]byte, 0, len(preface)+2+len(body)), preface...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	_, err = w.Write(append(b, body...))
	return err
}

func read(r io.Reader, m proto.Message) error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	if n > HelloMax {
		return fmt.Errorf("%w: begins with % x", ErrMalformed, head)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
