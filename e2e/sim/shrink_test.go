package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// try is run in a bubble of virtual time.
func try(t *testing.T, seed uint64, list []step, tell bool) (r result) {
	synctest.Test(t, func(*testing.T) { r = run(seed, list, tell) })
	return r
}

// shrink takes steps out while the run fails the same way, for at most the given time.
func shrink(t *testing.T, seed uint64, list []step, wrong string, bound time.Duration) ([]step, string) {
	stop := time.Now().Add(bound)
	for size := len(list) / 2; size > 0; {
		smaller := false
		for at := 0; at+size <= len(list) && time.Now().Before(stop); {
			less := append(append([]step(nil), list[:at]...), list[at+size:]...)
			if now := try(t, seed, less, false).wrong; now != "" && kind(now) == kind(wrong) {
				list, wrong, smaller = less, now, true
			} else {
				at += size
			}
		}
		if time.Now().After(stop) {
			break
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return list, wrong
}

// kind is the first words of what is wrong, without names and numbers.
func kind(wrong string) string {
	line, _, _ := strings.Cut(wrong, "\n")
	return strings.Join(strings.FieldsFunc(line, func(r rune) bool { return r >= '0' && r <= '9' }), "#")
}

// report is what a failure prints.
func report(t *testing.T, seed uint64, list []step, wrong string) string {
	short, text := shrink(t, seed, list, wrong, *flagShrink)
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\n", seed, wrong)
	fmt.Fprintf(&b, "again: go test ./e2e/sim -run TestSimulation -sim.seed=%d -sim.runs=1\n", seed)
	fmt.Fprintf(&b, "shortest found, %d of %d steps: %s\n", len(short), len(list), text)
	for _, s := range short {
		fmt.Fprintf(&b, "  %v\n", s)
	}
	lines := try(t, seed, short, true).story
	b.WriteString("its story, the end of it:\n")
	for _, line := range lines[max(0, len(lines)-storyMax):] {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}
