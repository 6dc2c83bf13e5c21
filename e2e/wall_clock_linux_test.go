//go:build linux && amd64

package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// wallClock is the wall clock of a process, as the process sees it. Linux gives programs the time by code that it maps
// into them, the vDSO; here that code is replaced by one which asks the kernel and adds an offset to the wall clock, so
// the program under test is as it is, and its monotonic clock is right.
type wallClock struct {
	t    testing.TB
	mem  *os.File
	spot int64 // where the offset is
}

// newWallClock takes hold of the clock of a process that runs.
func newWallClock(t testing.TB, p *process) *wallClock {
	t.Helper()
	pid := p.cmd.Process.Pid
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		t.Skip("this system does not let a process be changed: ", err)
	}
	t.Cleanup(func() { _ = mem.Close() })
	from, to := vdsoOf(t, pid)
	image := make([]byte, to-from)
	if _, err := mem.ReadAt(image, from); err != nil {
		t.Skip("the code that tells the time can't be read: ", err)
	}
	w := &wallClock{t: t, mem: mem, spot: to - 16}
	// What is written is behind the end of what the image holds.
	if !bytes.Equal(image[len(image)-64:], make([]byte, 64)) {
		t.Skip("there is no room behind the code that tells the time")
	}
	code := []byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, 228: clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi: the wall clock is number 0
		0x75, 0x0a, // jne to ret
		0x48, 0x8b, 0x15, 29, 0, 0, 0, // mov rdx, [rip+29]: the offset
		0x48, 0x01, 0x16, // add [rsi], rdx
		0xc3, // ret
	}
	stub := to - 64 + 1
	if len(code) != 22 || stub+18+29 != w.spot {
		t.Fatalf("the code does not fit: %d bytes", len(code))
	}
	entry := from + gettime(t, image)
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(int32(stub-entry-5)))
	// Nobody is in the code that is replaced while the process stands still, but for a moment that is not worth a thought.
	freeze(t, p)
	defer thaw(t, p)
	w.write(code, stub)
	w.write(jump, entry)
	return w
}

// off sets the clock so much off the right time.
func (w *wallClock) off(by time.Duration) {
	w.t.Helper()
	w.write(binary.LittleEndian.AppendUint64(nil, uint64(int64(by/time.Second))), w.spot)
}

func (w *wallClock) write(b []byte, at int64) {
	w.t.Helper()
	if _, err := w.mem.WriteAt(b, at); err != nil {
		w.t.Skip("the code that tells the time can't be changed: ", err)
	}
}

// vdsoOf is where the vDSO of a process is.
func vdsoOf(t testing.TB, pid int) (from, to int64) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				t.Fatal(err)
			}
			return from, to
		}
	}
	t.Skip("this system has no vDSO")
	return 0, 0
}

// gettime is where clock_gettime begins in the vDSO's image.
func gettime(t testing.TB, image []byte) int64 {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return int64(s.Value)
		}
	}
	t.Skip("the vDSO has no clock_gettime")
	return 0
}
