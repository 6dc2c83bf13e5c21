package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

const (
	peersCapacity = 4                     // of the backend in all trials
	peersGap      = 50 * time.Millisecond // between clients whose order is observed
	peersPatience = 90 * time.Second      // for the last client of a trial
)

// guest is one client's request at a gateway.
type guest struct {
	ask   ask
	leave context.CancelFunc
	done  chan struct{}
	got   answer
	took  time.Duration
}

// send sends a request in the background. The models are two names of the same backend, in turn.
func (g *gateway) send(t *testing.T, n int, a ask) *guest {
	ctx, cancel := context.WithCancel(context.Background())
	a.model, a.header = []string{"a", "b"}[n%2], g.header
	x := &guest{ask: a, leave: cancel, done: make(chan struct{})}
	address, began := g.address(), time.Now()
	go func() {
		defer close(x.done)
		x.got = call(ctx, address, a)
		x.took = time.Since(began)
	}()
	t.Cleanup(func() { cancel(); <-x.done })
	return x
}

// insist sends a request until it is served, as SDKs do that retry.
func (g *gateway) insist(t *testing.T, n int, a ask) *guest {
	ctx, cancel := context.WithTimeout(context.Background(), peersPatience)
	a.model, a.header = []string{"a", "b"}[n%2], g.header
	x := &guest{ask: a, leave: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		for {
			x.got = call(ctx, g.address(), a)
			if x.whole() || ctx.Err() != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-x.done })
	return x
}

// whole tells whether the client has been served to the end.
func (x *guest) whole() bool {
	return x.got.status == 200 && x.got.clean && (!x.ask.stream || strings.HasSuffix(string(x.got.body), "data: [DONE]\n\n"))
}

// over waits at most so long and tells whether the answer is there.
func (x *guest) over(within time.Duration) bool {
	select {
	case <-x.done:
		return true
	default:
	}
	select {
	case <-x.done:
		return true
	case <-time.After(within):
		return false
	}
}

// waitAll waits for the answers of all.
func waitAll(t *testing.T, guests []*guest) {
	t.Helper()
	end := time.Now().Add(peersPatience)
	for _, x := range guests {
		if !x.over(time.Until(end)) {
			t.Fatalf("no end of %s", x.ask.tag)
		}
	}
}

// fate names how an answer ended.
func (x *guest) fate() string {
	switch {
	case x.whole():
		return "served"
	case x.got.status == 0:
		return "no answer"
	case x.got.status == 200:
		return "broken"
	}
	return fmt.Sprint(x.got.status)
}

// fates counts how answers ended: "12 served, 4 × 503".
func fates(guests []*guest) string {
	count := map[string]int{}
	for _, x := range guests {
		count[x.fate()]++
	}
	var out []string
	if n := count["served"]; n > 0 {
		out = append(out, fmt.Sprintf("%d served", n))
	}
	delete(count, "served")
	for _, k := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%d × %s", count[k], k))
	}
	return strings.Join(out, ", ")
}

// overtaken counts the pairs that came to the backend the other way round than they came to the gateway. Tags are numbers.
func overtaken(order []string, from, to int) (inverted, pairs int) {
	var n []int
	for _, tag := range order {
		var i int
		if _, err := fmt.Sscanf(tag, "client-%d", &i); err == nil && i >= from && i < to && !slices.Contains(n, i) {
			n = append(n, i)
		}
	}
	for i := range n {
		for j := i + 1; j < len(n); j++ {
			pairs++
			if n[i] > n[j] {
				inverted++
			}
		}
	}
	return inverted, pairs
}

// orderCell tells how those who waited were served; nobody else than who waited has a place.
func orderCell(order []string, from, to int) string {
	inverted, pairs := overtaken(order, from, to)
	switch {
	case pairs == 0:
		return "nobody waits"
	case inverted == 0:
		return "as they came"
	}
	return fmt.Sprintf("%d of %d pairs the other way round", inverted, pairs)
}

func tag(i int) string { return fmt.Sprintf("client-%03d", i) }

// fill sends requests one after another: the first of them take the capacity, the others come behind them.
func (g *gateway) fill(t *testing.T, b *backend.Backend, from, to int, stream bool) []*guest {
	t.Helper()
	var out []*guest
	for i := from; i < to; i++ {
		out = append(out, g.send(t, i, ask{tag: tag(i), stream: stream, key: tag(i)}))
		if i < peersCapacity {
			await(t, "the backend has what it can take", func() bool { return b.Stats().Held >= i+1 })
			continue
		}
		time.Sleep(peersGap)
	}
	return out
}

// letOneByOne lets the backend end one run after the other, each when the place of the one before is taken again or
// nobody has come for it in a second: so the order in which who waits comes to the backend is the order of the gateway.
func letOneByOne(t *testing.T, b *backend.Backend, guests []*guest) {
	t.Helper()
	open := func() int {
		n := 0
		for _, x := range guests {
			if !x.over(0) {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(peersPatience); time.Now().Before(end); {
		s := b.Stats()
		if open() <= s.Held {
			break // nobody waits
		}
		if s.Held == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		b.Let(1)
		for last := time.Now().Add(time.Second); b.Stats().Total == s.Total && time.Now().Before(last) && open() > b.Stats().Held; {
			time.Sleep(time.Millisecond)
		}
	}
	b.LetAll()
	waitAll(t, guests)
}

// mostSince is how many ran at once when one of the runs after the first n began.
func mostSince(b *backend.Backend, n int) int {
	most := 0
	for _, r := range b.Runs() {
		if r.N > n {
			most = max(most, r.Together)
		}
	}
	return most
}

// promise is what iop alone is held to.
func (p *peer) promise(t *testing.T, kept bool, what string) {
	t.Helper()
	if p.ours && !kept {
		t.Errorf("iop does not keep what it promises: %s", what)
	}
}
