package e2e

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"iop/e2e/backend"
)

// The histories of real processes, as clients see them, are checked for linearizability against this model: a provider
// with some slots and a queue in order of arrival. A client is a rune.
type slots struct{ held, queue string }

type did struct {
	what   string // enter, run, end, leave
	client string
	out    string // of enter: taken, full, or "" = nobody knows
}

// freed takes a client out, and lets the first of the queue have its slot.
func (s slots) freed(client string) slots {
	if !strings.Contains(s.held, client) {
		return slots{s.held, strings.ReplaceAll(s.queue, client, "")}
	}
	s.held = strings.ReplaceAll(s.held, client, "")
	if first := []rune(s.queue); len(first) > 0 {
		s.held, s.queue = s.held+string(first[0]), string(first[1:])
	}
	return s
}

// linear is the model: what can come of an operation in a state.
func linear(capacity, queue int) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{slots{}} },
		Step: func(state, input, _ any) []any {
			s, op := state.(slots), input.(did)
			full := len([]rune(s.held)) == capacity
			switch {
			case op.what == "run" && !strings.Contains(s.held, op.client), op.what == "end" && !strings.Contains(s.held, op.client):
				return nil
			case op.what == "run":
				return []any{s}
			case op.what == "end", op.what == "leave":
				return []any{s.freed(op.client)}
			case full && len([]rune(s.queue)) == queue: // an enter, from here on
				if op.out == "taken" {
					return nil
				}
				return []any{s}
			case op.out == "full":
				return nil
			}
			in := slots{s.held, s.queue + op.client}
			if !full {
				in = slots{s.held + op.client, s.queue}
			}
			if op.out == "" {
				return []any{in, s}
			}
			return []any{in}
		},
	}
	return model.ToModel()
}

// history gathers operations with the times of their beginning and end, of one clock.
type history struct {
	began time.Time
	mu    sync.Mutex
	list  []porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// open is the end of an operation of which nobody heard: any time later.
const open = int64(1) << 62

func (h *history) add(op did, call, end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, porcupine.Operation{Input: op, Call: call, Return: end})
}

// TestHistoriesAreLinearizable: hundreds of requests of nine clients, of which up to six leave without an answer, on two
// slots and a queue of four. The same history must not fit a provider with another capacity or a longer queue. (A shorter
// one it would fit: who waits in the queue and who waits to be let in look the same to clients.)
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	r := dice(t)
	const capacity, queue, clients = 2, 4, 9
	each := rounds(30, 80)
	b := newBackend(t, backend.Options{Limit: capacity, Default: backend.Plan{Tokens: 3, Pace: 4 * time.Millisecond}})
	l := shared(b, capacity)
	l.queue, l.log = queue, "info"
	w := newWorld(t, l)
	h := &history{began: time.Now()}
	var all sync.WaitGroup
	for c := range clients {
		bored := make([]time.Duration, each) // how long the client waits before it leaves; 0 = to the end
		for i := range bored {
			// Each that nobody knows the end of doubles the ways in which the history can be read.
			if c < 6 && i == each/2 {
				bored[i] = time.Duration(1+r.IntN(15)) * time.Millisecond
			}
		}
		all.Go(func() {
			for i := range each {
				w.lead(h, string(rune(0x4e00+c*each+i)), bored[i])
			}
		})
	}
	all.Wait()
	w.awaitPending(0)
	w.awaitIdle()
	count := map[string]int{}
	for _, op := range h.list {
		count[strings.TrimSpace(op.Input.(did).what+" "+op.Input.(did).out)]++
	}
	t.Logf("%d operations: %v", len(h.list), count)
	began := time.Now()
	verdict := porcupine.CheckOperationsTimeout(linear(capacity, queue), h.list, 20*time.Second)
	if verdict == porcupine.Illegal {
		t.Error("the history is not linearizable")
	}
	t.Logf("checked in %v: %v", time.Since(began), verdict) // Unknown = it would have taken longer
	if count["enter full"] == 0 {
		t.Errorf("the history shows too little: %v", count)
	}
	slices.SortFunc(h.list, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, wrong := range [][2]int{{capacity - 1, queue}, {capacity + 1, queue}, {capacity, queue + 1}} {
		got := porcupine.CheckOperationsTimeout(linear(wrong[0], wrong[1]), h.list[:len(h.list)/3], 5*time.Second)
		if got == porcupine.Ok {
			t.Errorf("the history fits %d slots and a queue of %d as well", wrong[0], wrong[1])
		}
		t.Logf("%d slots and a queue of %d: %v", wrong[0], wrong[1], got)
	}
}

// lead makes a request and notes what its client sees.
func (w *world) lead(h *history, client string, bored time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := (&ask{tag: client, stream: true}).request(ctx, w.edge.openai)
	if err != nil {
		w.t.Error(err)
		return
	}
	sent := h.now()
	if bored > 0 {
		time.AfterFunc(bored, cancel)
	}
	res, err := newClient().Do(r)
	if err != nil {
		if bored == 0 {
			w.t.Errorf("no answer to %s: %v", client, err)
		}
		h.add(did{"enter", client, ""}, sent, open)
		h.add(did{"leave", client, ""}, sent, open)
		return
	}
	defer func() { _ = res.Body.Close() }()
	seen := h.now()
	switch res.StatusCode {
	case 429:
		h.add(did{"enter", client, "full"}, sent, seen)
		time.Sleep(3 * time.Millisecond) // a client's pause before the next one
		return
	case 200:
		h.add(did{"enter", client, "taken"}, sent, seen)
		h.add(did{"run", client, ""}, sent, seen)
	default:
		w.t.Errorf("%s: status %d", client, res.StatusCode)
		return
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		h.add(did{"end", client, ""}, seen, open)
		return
	}
	id := res.Header.Get("x-request-id")
	await(w.t, fmt.Sprint("the slot of ", id, " is free"), func() bool {
		for _, l := range w.leases() {
			if l.Request == id {
				return false
			}
		}
		return true
	})
	h.add(did{"end", client, ""}, seen, h.now())
}
