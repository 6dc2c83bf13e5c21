package storage

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestDecodingAllocatesInProportion: no length that a damaged or hostile entry or snapshot states makes decoding take
// memory out of proportion to the bytes that are there.
func TestDecodingAllocatesInProportion(t *testing.T) {
	var b bytes.Buffer
	if err := writeImage(&b, "c", everyRow()); err != nil {
		t.Fatal(err)
	}
	state := b.Bytes()[:b.Len()-sha256.Size]
	var entries [][]byte
	for _, c := range everyCommand() {
		entries = append(entries, encode(entryOf(c)))
	}
	r := rand.New(rand.NewPCG(1, 2))
	spoil := func(b []byte) []byte {
		b = bytes.Clone(b)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(b))
			n := min(1+r.IntN(9), len(b)-at)
			for i := range n {
				b[at+i] = []byte{0xff, 0x7f, 0x80, 0x01, byte(r.Uint32())}[r.IntN(5)]
			}
		}
		return b
	}
	for range 2000 {
		bad := spoil(entries[r.IntN(len(entries))])
		bounded(t, "entry", len(bad), func() { _, _ = (&decoder{}).entry(bad) })
	}
	for range 500 {
		body := spoil(state)
		sum := sha256.Sum256(body)
		bad := append(body, sum[:]...)
		bounded(t, "snapshot", len(bad), func() { _, _, _ = decodeImage(bad) })
	}
}

// bounded runs fn and compares what it allocated with the size of its input.
func bounded(t *testing.T, what string, size int, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+200*size); got > most {
		t.Fatalf("decoding a spoilt %s of %d bytes allocated %d bytes, at most %d are in proportion", what, size, got, most)
	}
}
