package nodepb

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

// FuzzNextChunk: what is found in a buffer without reading it is what reading it would have found.
func FuzzNextChunk(f *testing.F) {
	f.Add(AppendChunk([]byte("\r\n"), []byte("hello")))
	f.Add(AppendEnd([]byte("\r\n"), Outcome{Dispatched: "yes"}))
	for _, s := range []string{"", "\r\n", "\r\n5", "\r\n5\r", "\r\nfffffffff\r\n", "\r\n0\r\n\r\n", "\r\n7fffffff\r\nx", "\n5\r\nhello"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		start, n := NextChunk(b)
		if n == 0 {
			return
		}
		if start < 5 || start+n > len(b) {
			t.Fatalf("%q: a chunk of %d from %d", b, n, start)
		}
		br := bufio.NewReader(bytes.NewReader(b))
		if err := ReadChunkEnd(br); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if got, err := ReadChunkStart(br); err == nil && got != n {
			t.Fatalf("%q: a chunk of %d, read as %d", b, n, got)
		}
	})
}

// FuzzHandshake: whatever dials, the first line is read to its bound at most, and what passes names a node.
func FuzzHandshake(f *testing.F) {
	f.Add("n 1 " + strings.Repeat("00", SecretLen) + "\n")
	for _, s := range []string{"", "\n", "n 1\n", "GET / HTTP/1.1\r\n", "n 18446744073709551616 00\n", "%00 1 00\n", strings.Repeat("x", HandshakeMax+1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := strings.NewReader(s)
		_, err := ReadHandshake(r)
		if read := len(s) - r.Len(); read > HandshakeMax {
			t.Fatalf("%d bytes were read, at most %d should be", read, HandshakeMax)
		}
		if err == nil && !strings.Contains(s, "\n") {
			t.Fatalf("%q passes without an end", s)
		}
	})
}
