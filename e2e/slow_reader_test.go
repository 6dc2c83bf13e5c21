package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestSlowReaderHoldsOnlyItsOwnRun: a client that doesn't read holds its own slot and a bounded buffer, and nobody up;
// when it reads at last, its stream is whole.
func TestSlowReaderHoldsOnlyItsOwnRun(t *testing.T) {
	t.Parallel()
	const pieces, size = 1024, 64 << 10 // 64 MiB
	text := make([]string, pieces)
	for i := range text {
		text[i] = strings.Repeat(strconv.Itoa(i%10), size)
	}
	b := newBackend(t, backend.Options{Limit: 2})
	b.SetFor("huge", backend.Plan{Text: text})
	w := newWorld(t, shared(b, 2))
	w.want(200, ask{tag: "warm"})
	edge, node := memory(t, w.edge.process), memory(t, w.nodes["n1"])
	s := w.open(ask{tag: "huge"})
	sent := func() int { r, _ := b.Run("huge"); return r.Sent }
	last := -1
	await(t, "the backend is held up by the reader", func() bool {
		now := sent()
		same := now == last && now > 0
		last = now
		for i := range 5 {
			w.want(200, ask{tag: fmt.Sprint("other", i)})
		}
		return same
	})
	for i := range 50 {
		w.want(200, ask{tag: fmt.Sprint("other", i), stream: i%2 == 0})
	}
	if n := sent(); n >= pieces {
		t.Errorf("the backend has sent all %d pieces although nobody reads", n)
	}
	edgeMore, nodeMore := memory(t, w.edge.process)-edge, memory(t, w.nodes["n1"])-node
	t.Logf("with %d of %d pieces sent: edged %+d KiB, noded %+d KiB", sent(), pieces, edgeMore, nodeMore)
	const bound = 32 << 10
	if edgeMore > bound || nodeMore > bound {
		t.Errorf("memory grew by %d KiB in edged and %d KiB in noded", edgeMore, nodeMore)
	}
	if l := w.awaitLeases(1); len(l) != 1 {
		t.Errorf("leases %+v", l)
	}
	sum := 0
	for {
		f, err := s.frame()
		if err != nil {
			t.Fatalf("after %d bytes: %v", sum, err)
		}
		if f == "[DONE]" {
			break
		}
		sum += len(f)
	}
	if sum < pieces*size {
		t.Errorf("%d bytes arrived", sum)
	}
	if _, clean := s.rest(); !clean {
		t.Error("no clean end")
	}
	w.awaitIdle()
}

// memory is the resident set of a process in KiB; 0 where /proc does not tell.
func memory(t testing.TB, p *process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(v)[0])
			return n
		}
	}
	return 0
}

// TestTwentyMiBBodyPasses both ways, with nothing changed but the model.
func TestTwentyMiBBodyPasses(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.threshold = 900_000_000
	w := newWorld(t, l.unmetered())
	prompt := strings.Repeat("é🙂 \\\"\n", 20<<20/12)
	a := ask{tag: "big", prompt: prompt}
	body := a.bytes()
	if len(body) < 20<<20 {
		t.Fatalf("the body has only %d bytes", len(body))
	}
	for _, stream := range []bool{false, true} {
		a.stream = stream
		w.want(200, a)
		body := a.bytes()
		r, _ := b.Run("big")
		want := bytes.Replace(body, []byte(`"model":"m"`), []byte(`"model":"`+served("p1")+`"`), 1)
		if r.Size != int64(len(want)) || r.Sum != sha256.Sum256(want) {
			t.Errorf("the backend got %d bytes, want %d, or others", r.Size, len(want))
		}
	}
	b.Set(backend.Plan{Huge: 20 << 20})
	for _, stream := range []bool{false, true} {
		got := w.want(200, ask{tag: "big answer", stream: stream})
		if n := len(got.text()); n != 20<<20 {
			t.Errorf("the answer has %d bytes, want %d", n, 20<<20)
		}
	}
	w.awaitIdle()
	w.grants = 4
}
