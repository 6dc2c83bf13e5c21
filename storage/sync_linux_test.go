package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkSync measures what the disk allows: one write and fdatasync per batch, nothing else.
func BenchmarkSync(b *testing.B) {
	for _, size := range []int{128, 8 << 10, 128 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := f.Close(); err != nil {
					b.Error(err)
				}
			}()
			buf := make([]byte, size)
			for i := range b.N {
				if _, err := f.WriteAt(buf, int64(i*size)%(16<<20)); err != nil {
					b.Fatal(err)
				}
				if err := unix.Fdatasync(int(f.Fd())); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
		})
	}
}
