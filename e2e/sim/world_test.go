package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"iop/fsm"
)

// world is everything. It belongs to the one goroutine that carries out steps; admission's goroutines leave what they
// want in fresh.
type world struct {
	began  time.Time
	plan   plan
	log    log
	see    *observer
	places *places
	edges  []*edge
	nodes  []*node
	twins  []*node
	net    []*message

	clients []*client
	names   int
	nonce   uint64
	wall    time.Duration // how far the wall clock is off
	broken  string        // where the machine panicked
	tally   map[string]int
	story   story

	fresh fresh
}

// fresh is what admission's goroutines want, until the next settle.
type fresh struct {
	sync.Mutex
	proposals []proposal
	exchanges []*exchange
}

// fault is why a run failed.
type fault struct{ text string }

func (w *world) failf(format string, args ...any) { panic(fault{fmt.Sprintf(format, args...)}) }

// newWorld makes the world of a seed. tell = its story is kept.
func newWorld(seed uint64, tell bool) (w *world) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	w = &world{began: time.Now(), tally: map[string]int{}, plan: newPlan(rnd), story: story{on: tell}}
	w.log = log{w: w, leader: -1}
	w.see, w.places = newObserver(w), newPlaces(w)
	for i := range w.plan.edges {
		w.edges = append(w.edges, &edge{w: w, n: i, id: fsm.EdgeID(fmt.Sprint("e", i))})
	}
	for i := range w.plan.nodes {
		w.nodes = append(w.nodes, &node{w: w, id: fsm.NodeID(fmt.Sprint("n", i)), conns: map[*edge]*conn{}})
	}
	return w
}

// begin starts everything.
func (w *world) begin() {
	for _, e := range w.edges {
		e.open()
	}
	w.edges[0].propose(&fsm.ApplyConfig{Document: []byte("0"), Config: w.plan.config(), Force: true}, nil)
	for _, n := range w.nodes {
		n.open()
	}
	for range 8 {
		w.round()
	}
}

// result is what came of a run.
type result struct {
	wrong string // "" = nothing
	tally map[string]int
	story []string
}

// run carries out steps and then lets everything come to its end.
func run(seed uint64, list []step, tell bool) (r result) {
	w := newWorld(seed, tell)
	defer func() {
		p := recover()
		r.tally, r.story = maps.Clone(w.tally), w.story.lines
		w.bury()
		switch f := p.(type) {
		case nil:
		case fault:
			r.wrong = f.text
		default:
			r.wrong = fmt.Sprintf("panic: %v\n%s", p, w.broken)
		}
	}()
	w.live(list)
	return r
}

// live is a run. A panic of the machine is kept with its place.
func (w *world) live(list []step) {
	defer func() {
		if p := recover(); p != nil {
			if _, ours := p.(fault); !ours {
				w.broken = string(debug.Stack())
			}
			panic(p)
		}
	}()
	w.begin()
	for _, s := range list {
		w.story.addf("# %v", s)
		w.do(s)
		w.settle()
	}
	w.end()
}

// settle lets admission do what there is to do without time passing, and takes what it wants.
func (w *world) settle() {
	for {
		synctest.Wait()
		w.fresh.Lock()
		proposals, exchanges := w.fresh.proposals, w.fresh.exchanges
		w.fresh.proposals, w.fresh.exchanges = nil, nil
		w.fresh.Unlock()
		if len(proposals) == 0 && len(exchanges) == 0 {
			break
		}
		sortProposals(proposals)
		for _, p := range proposals {
			p.session.take(p)
		}
		sortExchanges(exchanges)
		for _, x := range exchanges {
			x.client.edge.start(x)
		}
	}
	for _, n := range slices.Concat(w.nodes, w.twins) {
		n.settle()
	}
}

// round lets everything go on a little, in order and without loss.
func (w *world) round() {
	for _, e := range w.edges {
		if e.up {
			e.flush(2)
		}
		for _, n := range w.nodes {
			n.dial(e)
		}
	}
	w.settle()
	for range len(w.net) + 4 {
		w.carry(0)
	}
	for range 4 {
		w.log.commit(1, false)
	}
	for _, e := range w.edges {
		if e.lag--; e.lag < 0 {
			e.lag = 0
			e.apply(100)
		}
	}
	w.settle()
	time.Sleep(time.Millisecond)
}

// bury ends all goroutines of a world.
func (w *world) bury() {
	for _, e := range w.edges {
		e.kill()
	}
	for _, c := range w.clients {
		c.cancel()
	}
	synctest.Wait()
	w.fresh.Lock()
	left := w.fresh.exchanges
	w.fresh.exchanges = nil
	w.fresh.Unlock()
	for _, x := range left {
		x.say(verdict{why: fsm.ReasonCanceled})
	}
	time.Sleep(time.Minute) // timers of admission
	synctest.Wait()
}

func pick[T any](list []T, n uint16) (none T, ok bool) {
	if len(list) == 0 {
		return none, false
	}
	return list[int(n)%len(list)], true
}
