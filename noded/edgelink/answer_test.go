package edgelink

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"

	"iop/proto/nodepb"
)

// written is a connection that counts what is written to it.
type written struct {
	net.Conn
	bytes.Buffer
	writes int
}

func (w *written) Write(p []byte) (int, error) { w.writes++; return w.Buffer.Write(p) }
func (w *written) Read(p []byte) (int, error)  { return w.Buffer.Read(p) }

// What is kept for later goes out at the flush, and what the outcome follows at once goes out with it.
func TestAnAnswerKeepsWhatMayGoLater(t *testing.T) {
	var w written
	var a answer
	a.init(&w)
	a.hold.Stop()
	a.reset()
	send := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	send(a.Head(200, http.Header{"Content-Type": {"text/event-stream"}}))
	a.hold.Stop() // nothing but this test sends
	send(a.Later([]byte("one ")))
	send(a.Later([]byte("two ")))
	if w.writes != 0 {
		t.Fatalf("%d writes before a flush", w.writes)
	}
	send(a.Flush())
	send(a.Flush())
	if w.writes != 1 {
		t.Fatalf("%d writes after it", w.writes)
	}
	send(a.Later([]byte("three")))
	send(a.end(nodepb.Outcome{Dispatched: "yes"}))
	if w.writes != 2 {
		t.Fatalf("%d writes at the end", w.writes)
	}
	got := w.String()
	for _, piece := range []string{"one ", "two ", "three"} {
		if !strings.Contains(got, piece) {
			t.Errorf("%q is not in %q", piece, got)
		}
	}
	br := bufio.NewReader(strings.NewReader(got))
	if line, err := br.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("%v, %q", err, line)
	}
}

// What is kept is bounded, and large pieces are not copied.
func TestWhatAnAnswerKeepsIsBounded(t *testing.T) {
	var w written
	var a answer
	a.init(&w)
	a.reset()
	if err := a.Later([]byte("x")); err == nil {
		t.Error("data before a head is taken")
	}
	if err := a.Head(200, http.Header{}); err != nil {
		t.Fatal(err)
	}
	a.hold.Stop()
	for range 100 {
		if err := a.Later(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if w.writes < 2 || len(a.buf) > laterMax {
		t.Errorf("%d writes, %d bytes kept", w.writes, len(a.buf))
	}
	before := w.Len()
	if err := a.Later(make([]byte, 2*copyMax)); err != nil {
		t.Fatal(err)
	}
	if w.Len()-before < 2*copyMax || len(a.buf) != 0 {
		t.Errorf("a large piece: %d bytes sent, %d kept", w.Len()-before, len(a.buf))
	}
}
