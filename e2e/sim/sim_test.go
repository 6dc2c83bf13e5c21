package sim

import (
	"flag"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	flagSeed   = flag.Uint64("sim.seed", 1, "first seed")
	flagRuns   = flag.Int("sim.runs", 0, "how many seeds; 0 = as many as -sim.for allows")
	flagFor    = flag.Duration("sim.for", 45*time.Second, "how long TestSimulation takes new seeds")
	flagShrink = flag.Duration("sim.shrink", 20*time.Second, "how long a failing run is made shorter")
	flagSize   = flag.Int("sim.steps", 300, "steps per seed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() && *flagRuns == 0 {
		*flagRuns = 50
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// TestSimulation runs seeds for a while. What is wrong is printed with the seed and the shortest list of steps found.
func TestSimulation(t *testing.T) {
	all := map[string]int{}
	stop := time.Now().Add(*flagFor)
	runs := 0
	for seed := *flagSeed; *flagRuns == 0 && time.Now().Before(stop) || runs < *flagRuns; seed++ {
		list := steps(seed, *flagSize)
		r := try(t, seed, list, false)
		if r.wrong != "" {
			t.Fatal(report(t, seed, list, r.wrong))
		}
		for k, n := range r.tally {
			all[k] += n
		}
		runs++
	}
	t.Logf("%d runs of %d steps", runs, *flagSize)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%8d %s", all[k], k)
	}
}
