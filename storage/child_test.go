package storage

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"iop/fsm"
)

const childEnv = "IOP_STORAGE_TEST_CHILD"

func childDir() string { return os.Getenv(childEnv) }

// child opens the directory, admits and releases for ever, and prints a line for every acknowledged command, which its
// parent kills it in the middle of.
func child() {
	ctx := context.Background()
	s, err := Open(ctx, Options{Dir: childDir(), Replica: "e1", History: History{MaxBytes: 1}, keepEntries: 64})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go func() { // so that the kill meets snapshots and compaction too
		for range time.Tick(15 * time.Millisecond) {
			if err := s.log.snapshot(); err != nil {
				fmt.Println("error", err)
			}
		}
	}()
	if _, err := s.Do(ctx, world(1, 0)); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	x, err := s.OpenSession(ctx, "e1", nil)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	o, err := x.Do(ctx, &fsm.RegisterNode{Node: "n1", Instance: 7})
	if err == nil {
		_, err = x.Do(ctx, &fsm.NodeReady{Node: "n1", Generation: o.Generation})
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("session", x.ID())
	for w := range 16 {
		go childWorker(ctx, x, w)
	}
	select {}
}

func childWorker(ctx context.Context, x *Session, w int) {
	for i := 0; ; i++ {
		id := fmt.Sprintf("s%d-w%d-%d", x.ID(), w, i)
		o, err := x.Do(ctx, admit(id))
		if err != nil || o.Code != fsm.Granted {
			fmt.Println("error", id, o.Code, o.Refusal, err)
			return
		}
		fmt.Println("granted", id, o.Grant.Lease)
		if i%3 == 0 {
			continue // some leases stay
		}
		if o, err = x.Do(ctx, &fsm.Release{Lease: o.Grant.Lease, Reason: fsm.ReasonDone}); err != nil || o.Code != fsm.Returned {
			fmt.Println("error", id, o.Code, err)
			return
		}
		fmt.Println("returned", id)
	}
}

// TestKilledAtAnyMoment kills a process 12 times at a random moment: each time everything acknowledged is there, exactly once.
func TestKilledAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	leases := map[string]string{} // all ever granted, by lease
	for round := range 12 {
		lines := killedRun(t, dir, time.Duration(random.Int64N(int64(250*time.Millisecond))))
		held := map[string]bool{} // by request: granted, and not returned
		session := ""
		for _, line := range lines {
			f := strings.Fields(line)
			switch f[0] {
			case "error":
				t.Fatalf("round %d: %s", round, line)
			case "session":
				session = f[1]
			case "granted":
				held[f[1]] = true
				if other, twice := leases[f[2]]; twice {
					t.Fatalf("round %d: lease %s granted to %s and %s", round, f[2], other, f[1])
				}
				leases[f[2]] = f[1]
			case "returned":
				delete(held, f[1])
			}
		}
		afterKill(t, dir, round, session, lines, held)
	}
	s := openAt(t, dir)
	checked(t, s)
	t.Logf("%d leases granted and acknowledged, index %d", len(leases), s.Stats().Applied)
}

// killedRun returns the whole lines that a child printed until it was killed.
func killedRun(t *testing.T, dir string, after time.Duration) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	killed := false
	scanner := bufio.NewScanner(out)
	var timer *time.Timer
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
		if !killed { // it is up: it will be killed some time from now
			killed = true
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	if timer != nil {
		timer.Stop()
	}
	if err := cmd.Wait(); err == nil || !killed {
		t.Errorf("the child was not killed: %v %v", err, lines)
	}
	if n := len(lines); n > 0 && strings.HasPrefix(lines[n-1], "granted") && len(strings.Fields(lines[n-1])) < 3 {
		lines = lines[:n-1]
	}
	return lines
}

// afterKill inspects what the killed process left.
func afterKill(t *testing.T, dir string, round int, session string, lines []string, held map[string]bool) {
	t.Helper()
	m, info, err := Inspect(dir)
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	for id := range held {
		if r, ok := m.Request(fsm.RequestID(id)); !ok && !underWay(lines, id) || ok && r.State != fsm.StateHeld {
			t.Errorf("round %d: %s was granted and is not held: %+v", round, id, r)
		}
	}
	for _, r := range m.Leases() {
		if id := string(r.ID); !held[id] && strings.HasPrefix(id, "s"+session+"-") && strings.Contains(strings.Join(lines, "\n")+"\n", "returned "+id+"\n") {
			t.Errorf("round %d: %s was returned and is held", round, id)
		}
	}
	t.Logf("round %d: %d lines, %d held, snapshot %d, log %d to %d", round, len(lines), len(held), info.SnapshotIndex, info.FirstIndex, info.LastIndex)
}

// underWay tells whether a release of a held lease may have been on disk without having been acknowledged.
func underWay(lines []string, id string) bool {
	var i int
	_, err := fmt.Sscanf(id[strings.LastIndex(id, "-")+1:], "%d", &i)
	return err == nil && i%3 != 0
}
