package peerpb

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"
)

func TestHelloGoesThrough(t *testing.T) {
	in := &Hello{Cluster: "c1", From: "edge-1", To: "edge-2", ProtocolMajor: 1, ProtocolMinor: 7, Version: "v1"}
	var b bytes.Buffer
	if err := WriteHello(&b, in); err != nil {
		t.Fatal(err)
	}
	b.WriteString("raft's")
	if got := string(b.Next(PrefaceLen)); got != RaftPreface {
		t.Fatalf("preface %q", got)
	}
	out, err := ReadHello(&b)
	if err != nil || !proto.Equal(in, out) {
		t.Fatalf("%v, %v", out, err)
	}
	if b.String() != "raft's" {
		t.Errorf("the reader left %q", b.String())
	}
}

func TestHelloThatIsTooLong(t *testing.T) {
	if err := WriteHello(io.Discard, &Hello{Cluster: string(make([]byte, HelloMax))}); err == nil {
		t.Error("written")
	}
	if _, err := ParseHello(make([]byte, HelloMax+1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("parsed: %v", err)
	}
	// What a TLS port says to plain text: an alert.
	if _, err := ReadHelloAnswer(bytes.NewReader([]byte{0x15, 3, 1, 0, 2, 2, 70})); !errors.Is(err, ErrMalformed) {
		t.Errorf("read: %v", err)
	}
}

// FuzzHello reads anything: it must end with a Hello or an error, and take no more than it says.
func FuzzHello(f *testing.F) {
	var b bytes.Buffer
	if err := WriteHello(&b, &Hello{Cluster: "c", From: "a", To: "b", ProtocolMajor: 1}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[PrefaceLen:])
	f.Add([]byte{0, 0})
	f.Add([]byte{0xff, 0xff, 1})
	f.Add([]byte{0, 3, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		h, err := ReadHello(r)
		if taken := len(in) - r.Len(); taken > 2+HelloMax {
			t.Fatalf("took %d bytes", taken)
		}
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := WriteHello(&again, h); err != nil {
			return // fields that we don't know made it longer than ours may be
		}
		again.Next(PrefaceLen)
		if twice, err := ReadHello(&again); err != nil || !proto.Equal(h, twice) {
			t.Fatalf("%v became %v, %v", h, twice, err)
		}
	})
}
