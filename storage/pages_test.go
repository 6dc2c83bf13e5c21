package storage

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
)

// FuzzPages: whatever is in the log's file, it is verified without a panic and without much memory.
func FuzzPages(f *testing.F) {
	dir := f.TempDir()
	s := openAt(f, dir)
	running(f, s, world(1, 1), nil)
	closeStore(f, s)
	b, err := os.ReadFile(filepath.Join(dir, logDB))
	if err != nil {
		f.Fatal(err)
	}
	b = bytes.TrimRight(b, "\x00")
	f.Add(b)
	f.Add(b[:8192])
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, b []byte) {
		if len(b) >= 8192 { // with the right checksums, so that it is about what comes behind them
			b = bytes.Clone(b)
			for _, meta := range [][]byte{b[pageHead:], b[4096+pageHead:]} {
				h := fnv.New64a()
				_, _ = h.Write(meta[:metaSize-8])
				binary.LittleEndian.PutUint64(meta[metaSize-8:], h.Sum64())
			}
		}
		_ = (&pageTree{from: bytes.NewReader(b), size: uint64(len(b))}).verify()
	})
}

// BenchmarkVerifyPages measures what a start pays for it: ns per MiB of pages in use.
func BenchmarkVerifyPages(b *testing.B) {
	dir := b.TempDir()
	s := openAt(b, dir)
	x := running(b, s, world(1, 100), nil)
	for i := range 200_000 {
		w := newWaiter()
		x.Propose(admit(string(bytes.Repeat([]byte("x"), 100))), w)
		if i%4096 == 0 {
			if _, err := w.wait(within(b)); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := s.log.snapshot(); err != nil {
		b.Fatal(err)
	}
	closeStore(b, s)
	path := filepath.Join(dir, logDB)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if err := verifyPages(path); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(info.Size()>>20), "MiB-file")
}
