package adapter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestChunkedBodiesAreReadHoweverTheyAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.StringN(1, 40, -1)).Draw(t, "pieces")
		extension := rapid.SampledFrom([]string{"", ";a=b", " ;x", "\t"}).Draw(t, "extension")
		trailer := rapid.SampledFrom([]string{"", "X-T: v\r\n", "A: b\r\nC: d\r\n"}).Draw(t, "trailer")
		var wire, want strings.Builder
		for _, p := range pieces {
			fmt.Fprintf(&wire, "%X%s\r\n%s\r\n", len(p), extension, p)
			want.WriteString(p)
		}
		wire.WriteString("00\r\n" + trailer + "\r\nNEXT")
		var r io.Reader = strings.NewReader(wire.String())
		if rapid.Bool().Draw(t, "byte by byte") {
			r = iotest.OneByteReader(r)
		}
		br := bufio.NewReader(r)
		got, err := io.ReadAll(&chunks{br: br})
		if err != nil || string(got) != want.String() {
			t.Fatalf("got %q, %v; want %q", got, err, want.String())
		}
		if rest, _ := io.ReadAll(br); string(rest) != "NEXT" {
			t.Fatalf("%q is left, want what follows the body", rest)
		}
	})
}

func TestMalformedChunksAreRefused(t *testing.T) {
	for _, wire := range []string{
		"x\r\n", "\r\n", "-1\r\n", "1 2\r\na\r\n", "0x1\r\na\r\n", "1\na\r\n0\r\n\r\n", "1\r\nab\r\n0\r\n\r\n", "1\r\na\n0\r\n\r\n",
		"1000000000000000\r\na", strings.Repeat("1", 9000) + "\r\n", "0\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 80) + "\r\n",
	} {
		if _, err := io.ReadAll(&chunks{br: bufio.NewReaderSize(strings.NewReader(wire), readBufferBytes)}); !errors.Is(err, errChunk) {
			t.Errorf("%.30q: %v, want it refused", wire, err)
		}
	}
	for _, wire := range []string{"", "1", "1\r\n", "2\r\na", "1\r\na", "1\r\na\r\n", "0\r\n", "0\r\nA: b\r\n"} {
		if _, err := io.ReadAll(&chunks{br: bufio.NewReader(strings.NewReader(wire))}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v, want an unexpected end", wire, err)
		}
	}
}
