package nodelink

import (
	"bytes"
	"net"
	"net/http"
	"testing"

	"iop/proto/nodepb"
)

// taken is an Answer that keeps what it gets.
type taken struct{ bytes.Buffer }

func (*taken) Head(int, http.Header) error { return nil }
func (t *taken) Data(p []byte) error       { _, err := t.Write(p); return err }
func (*taken) Flush() error                { return nil }

// TestBufferGrowsWithItsAnswer: a small answer keeps the small buffer, a large one gets a large buffer for its time, and
// both arrive as they are, whatever their chunks are.
func TestBufferGrowsWithItsAnswer(t *testing.T) {
	var pool bufferPool
	for _, chunks := range [][]int{{10}, {3000, 200}, {100_000, 7, 50_000}, {4095, 4096, 4097, 1, 40_000}} {
		near, far := net.Pipe()
		var want, got taken
		wire := nodepb.AppendAnswer(nil, 200, http.Header{"Content-Type": {"text/plain"}})
		for i, n := range chunks {
			piece := bytes.Repeat([]byte{byte('a' + i), byte('0' + i)}, n)[:n]
			want.Write(piece)
			wire = nodepb.AppendChunk(wire, piece)
		}
		wire = nodepb.AppendEnd(wire, nodepb.Outcome{Dispatched: "yes"})
		sent := make(chan error, 1)
		go func() { _, err := far.Write(wire); sent <- err }()
		u := pool.get(near, &got)
		end, err := u.read()
		if err != nil || !end.Complete || !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Errorf("%v: %+v %v, %d bytes of %d", chunks, end, err, got.Len(), want.Len())
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if large := len(wire) > 2*readBuffer; large != (u.large != nil) {
			t.Errorf("%v: a large buffer: %v, want %v", chunks, !large, large)
		}
		pool.put(u)
		if u.large != nil || u.br != u.small {
			t.Errorf("%v: it is not small again", chunks)
		}
		_, _ = near.Close(), far.Close()
	}
}
