package nodepb

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
)

// A connection to an edge's node listener shows with its first PrefaceLen bytes what it is.
const (
	PrefaceLen     = 6
	ControlPreface = "PRI * " // the beginning of HTTP/2's preface: gRPC
	DataPreface    = "IOP/1 " // a data handshake
)

// HandshakeMax bounds a handshake line in bytes, its end included.
const HandshakeMax = 1024

// SecretLen is the length of Accepted.secret in bytes.
const SecretLen = 32

// Handshake proves a data connection. On the wire, and the edge's answer:
//
//	IOP/1 <node, query-escaped> <generation> <secret, hex>\n
//	OK\n                       or   NO\n and the end
type Handshake struct {
	Node       string
	Generation uint64
	Secret     []byte
}

// Answers to a handshake.
const (
	HandshakeOK = "OK\n"
	HandshakeNo = "NO\n"
)

// AppendHandshake adds h's line to b.
func AppendHandshake(b []byte, h Handshake) []byte {
	b = append(b, DataPreface...)
	b = append(b, url.QueryEscape(h.Node)...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, h.Generation, 10)
	b = append(b, ' ')
	b = hex.AppendEncode(b, h.Secret)
	return append(b, '\n')
}

// ReadHandshake reads what follows DataPreface. Nothing may follow the line before it is answered.
func ReadHandshake(r io.Reader) (Handshake, error) {
	var buf [HandshakeMax]byte
	n := 0
	for {
		m, err := r.Read(buf[n:])
		n += m
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			if i != n-1 {
				return Handshake{}, fmt.Errorf("data handshake: %w: bytes after its line", ErrMalformed)
			}
			return parseHandshake(string(buf[:i]))
		}
		if err != nil {
			return Handshake{}, fmt.Errorf("data handshake: %w", unexpected(err))
		}
		if n == len(buf) {
			return Handshake{}, fmt.Errorf("data handshake: %w: too long", ErrMalformed)
		}
	}
}

func parseHandshake(line string) (Handshake, error) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return Handshake{}, fmt.Errorf("data handshake: %w", ErrMalformed)
	}
	node, err1 := url.QueryUnescape(parts[0])
	generation, err2 := strconv.ParseUint(parts[1], 10, 64)
	secret, err3 := hex.DecodeString(parts[2])
	if err1 != nil || err2 != nil || err3 != nil || len(secret) != SecretLen {
		return Handshake{}, fmt.Errorf("data handshake: %w", ErrMalformed)
	}
	return Handshake{Node: node, Generation: generation, Secret: secret}, nil
}

// ReadHandshakeAnswer reads the edge's answer; false: it refused.
func ReadHandshakeAnswer(r io.Reader) (bool, error) {
	var buf [len(HandshakeOK)]byte
	if _, err := io.ReadFull(r, buf[:]); err != nil {
		return false, fmt.Errorf("data handshake's answer: %w", err)
	}
	return string(buf[:]) == HandshakeOK, nil
}
