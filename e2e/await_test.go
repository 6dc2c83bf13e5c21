package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// patience is how long a fact may take. It is generous: a test that passes never waits for it.
const patience = 30 * time.Second

// await waits until a fact holds; what names it.
func await(t testing.TB, what string, fact func() bool) {
	t.Helper()
	awaitWithin(t, patience, what, fact)
}

func awaitWithin(t testing.TB, bound time.Duration, what string, fact func() bool) {
	t.Helper()
	end := time.Now().Add(bound)
	for pause := 2 * time.Millisecond; !fact(); pause = min(pause*3/2, 40*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", bound, what)
		}
		time.Sleep(pause)
	}
}

// long says whether there is time for many rounds.
func long() bool { return os.Getenv("E2E_LONG") == "1" }

// rounds is few, or many when there is time.
func rounds(few, many int) int {
	if long() {
		return many
	}
	return few
}

// dice returns a seeded source and prints its seed if the test fails; E2E_SEED repeats one.
func dice(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("E2E_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("E2E_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
