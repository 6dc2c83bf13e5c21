package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// Histories of clients that ask any replica while the replicas lose each other. The model is that of linear_test.go, and
// one thing more: a client at a replica that the majority has lost is far. Its place may be passed by while it is
// detached, and a grant that crosses the end of its session is taken back; so a far client in the queue may take a free
// slot at any moment before others, or not, and may lose it as long as it was not seen to run. A far client is a rune
// from farFirst on; once it runs, it is written as the near one.
const (
	nearFirst = 0x4e00
	farFirst  = 0xac00
)

func far(r rune) bool { return r >= farFirst }

// nearly is how a client that runs is written.
func nearly(client string) string {
	r := []rune(client)[0]
	if far(r) {
		r -= farFirst - nearFirst
	}
	return string(r)
}

// without takes a client out.
func without(s, client string) string { return strings.ReplaceAll(s, client, "") }

// reached adds all states that can come of one without anything that clients see. Slots that nears could have are
// never left free.
func (s slots) reached(capacity int, into map[slots]bool) {
	if into[s] {
		return
	}
	free := capacity - len([]rune(s.held))
	first := strings.IndexFunc(s.queue, func(r rune) bool { return !far(r) })
	settled := free == 0 || first < 0
	if settled {
		into[s] = true
	}
	for _, r := range s.held {
		if c := string(r); far(r) && settled { // its grant is taken back, and it comes to the end of the queue
			slots{without(s.held, c), s.queue + c}.reachedOnce(capacity, into)
		}
	}
	if free == 0 {
		return
	}
	for _, r := range s.queue {
		c := string(r)
		slots{sorted(s.held + c), without(s.queue, c)}.reached(capacity, into)
		if !far(r) {
			return // who is behind it can't be before it
		}
	}
}

// reachedOnce is reached but for a state that was there, so that taking back and granting again comes to an end.
func (s slots) reachedOnce(capacity int, into map[slots]bool) {
	if !into[s] {
		s.reached(capacity, into)
	}
}

func sorted(s string) string {
	r := []rune(s)
	slices.Sort(r)
	return string(r)
}

// linearAnywhere is the model of one resource. lifo has the last in the queue served first, which must not fit.
func linearAnywhere(capacity int, lifo bool) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{slots{}} },
		Step: func(state, input, _ any) []any {
			before, after := map[slots]bool{}, map[slots]bool{}
			state.(slots).reached(capacity, before)
			op := input.(did)
			for s := range before {
				for _, next := range s.did(op, lifo) {
					next.reached(capacity, after)
				}
			}
			out := make([]any, 0, len(after))
			for s := range after {
				out = append(out, s)
			}
			return out
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return model.ToModel()
}

// did is what comes of an operation alone.
func (s slots) did(op did, lifo bool) []slots {
	c, near := op.client, nearly(op.client)
	switch op.what {
	case "enter":
		in := slots{s.held, s.queue + c}
		if lifo {
			in.queue = c + s.queue
		}
		if op.out == "" {
			return []slots{in, s}
		}
		return []slots{in}
	case "run":
		if !strings.Contains(s.held, c) {
			return nil
		}
		return []slots{{sorted(without(s.held, c) + near), s.queue}}
	case "end":
		if !strings.Contains(s.held, near) {
			return nil
		}
		return []slots{{without(s.held, near), s.queue}}
	}
	return []slots{{without(without(s.held, c), near), without(s.queue, c)}} // leave
}

// visit is a request as its client saw it, in times of the history's clock.
type visit struct {
	number            int
	at                int   // replica
	sent, seen, freed int64 // seen: the end of the first event, or a refusal
	entered           int64 // it was told that it waits; 0 = it was not
	until             int64 // it still ran: more came than the last event
	served            bool
	code              string // of a refusal
	left              bool
}

// absence is when a majority had lost some replicas.
type absence struct {
	gone     []int
	from, to int64
}

// touches tells whether a visit was at one of them, and under way then.
func (a *absence) touches(v *visit) bool {
	return slices.Contains(a.gone, v.at) && v.sent < a.to && (v.seen == 0 || v.seen > a.from)
}

// operations are those of a visit.
func (v *visit) operations(a *absence) []porcupine.Operation {
	isFar := a.touches(v)
	c := string(rune(nearFirst + v.number))
	if isFar {
		c = string(rune(farFirst + v.number))
	}
	op := func(what, out string, from, to int64) porcupine.Operation {
		return porcupine.Operation{Input: did{what, c, out}, Call: from, Return: to}
	}
	switch {
	case v.served:
		run := op("run", "", max(v.sent, v.entered), v.seen)
		return []porcupine.Operation{op("enter", "taken", v.sent, cmp.Or(v.entered, v.seen)), run, op("end", "", v.until, v.freed)}
	case v.entered > 0: // and then it left, or was refused
		return []porcupine.Operation{op("enter", "taken", v.sent, v.entered), op("leave", "", v.entered, open)}
	case v.left:
		return []porcupine.Operation{op("enter", "", v.sent, open), op("leave", "", v.sent, open)}
	case isFar && v.sent < a.from: // it may have had a place before it was refused
		return []porcupine.Operation{op("enter", "", v.sent, v.seen), op("leave", "", v.sent, open)}
	}
	return nil // refused before any effect
}

// inquiry is the clients of one resource and what they saw.
type inquiry struct {
	c        *cluster
	model    string
	capacity int
	began    time.Time
	mu       sync.Mutex
	visits   []*visit
	over     atomic.Int64 // visits that were served to their end
}

func (q *inquiry) now() int64 { return int64(time.Since(q.began)) }

// client asks its replica again and again until stop.
func (q *inquiry) client(r *rand.Rand, at int, stop *atomic.Bool, leaves bool) {
	for n := 0; !stop.Load(); n++ {
		var bored time.Duration
		if leaves && n == 2 { // each whose end nobody knows doubles the ways in which the history can be read
			bored = time.Duration(5+r.IntN(20)) * time.Millisecond
		}
		q.visit(at, bored)
		time.Sleep(time.Duration(20+r.IntN(80)) * time.Millisecond) // a client's pause
	}
}

func (q *inquiry) visit(at int, bored time.Duration) {
	q.mu.Lock()
	v := &visit{number: len(q.visits), at: at, sent: q.now(), freed: open}
	q.visits = append(q.visits, v)
	q.mu.Unlock()
	w := q.c.at(at)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := ask{model: q.model, tag: fmt.Sprint(q.model, q.began.UnixNano(), "-", v.number), stream: true}
	req, err := a.request(ctx, w.edge.openai)
	if err != nil {
		w.t.Error(err)
		return
	}
	if bored > 0 {
		time.AfterFunc(bored, cancel)
	}
	id, err := q.read(v, req)
	switch {
	case err != nil && bored > 0:
		v.left = true
	case err != nil:
		w.t.Errorf("%s at %s: %v", a.tag, q.c.id(at), err)
	}
	if !v.served {
		return
	}
	await(w.t, fmt.Sprint("the slot of ", id, " is free"), func() bool {
		return !slices.ContainsFunc(w.leases(), func(l adminapi.Lease) bool { return l.Request == id })
	})
	v.freed = q.now()
	q.over.Add(1)
}

// read notes what comes as an answer, and when.
func (q *inquiry) read(v *visit, req *http.Request) (id string, err error) {
	res, err := newClient().Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	last := int64(0)
	for whole := false; ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil || whole || v.code != "" {
				return res.Header.Get("x-request-id"), err
			}
			return "", io.ErrUnexpectedEOF
		}
		text, data := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case res.StatusCode != http.StatusOK, strings.HasPrefix(text, `{"error":`):
			v.seen = q.now()
			x := answer{status: res.StatusCode, body: []byte(text)}
			if v.code = x.code(); data {
				return "", nil // how it breaks off is another story
			}
		case strings.HasPrefix(text, ": queued") && v.entered == 0:
			v.entered = q.now()
		case text == "[DONE]":
			whole = true
		case data && !v.served:
			v.seen, v.served = q.now(), true
			v.until, last = v.seen, v.seen
		case data:
			v.until, last = last, q.now()
		}
	}
}

// operations are those of all visits, in the order of their calls.
func (q *inquiry) operations(a *absence) []porcupine.Operation {
	var list []porcupine.Operation
	for _, v := range q.visits {
		list = append(list, v.operations(a)...)
	}
	slices.SortStableFunc(list, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return list
}

// judge holds the history against the model. It must be decided in time.
func (q *inquiry) judge(name string, a *absence) {
	t := q.c.t
	t.Helper()
	fars := 0
	for _, v := range q.visits {
		if a.touches(v) {
			fars++
		}
		if v.code != "" && !slices.Contains([]string{"no_leader", "overloaded"}, v.code) {
			t.Errorf("%s: a client at %s was answered %s", name, q.c.id(v.at), v.code)
		}
	}
	list := q.operations(a)
	began := time.Now()
	got := porcupine.CheckOperationsTimeout(linearAnywhere(q.capacity, false), list, 20*time.Second)
	t.Logf("%s, %s: %d clients, %d of them far, %d operations: %v after %v", name, q.model, len(q.visits), fars, len(list), got, since(began))
	if got == porcupine.Ok {
		return
	}
	t.Errorf("%s, %s: the history is %v", name, q.model, got)
	for _, o := range list {
		t.Logf("%+v %v–%v", o.Input, time.Duration(o.Call), time.Duration(o.Return))
	}
}

// fits holds the first visits, those that were over before the replicas lost each other, against a wrong model. (What
// is left out can't make the rest wrong.)
func (q *inquiry) fits(capacity int, lifo bool, a *absence) porcupine.CheckResult {
	first := &inquiry{}
	for _, v := range q.visits {
		if v.freed < a.from && len(first.visits) < 7 {
			first.visits = append(first.visits, v)
		}
	}
	return porcupine.CheckOperationsTimeout(linearAnywhere(capacity, lifo), first.operations(a), 5*time.Second)
}

// TestClusterHistoriesAreLinearizable: clients ask any replica for four resources while the replicas lose each other in
// different ways. Each resource's history is as if there were one queue for all, in the order of arrival; porcupine has to
// say so in time. With a slot less, or the queue the wrong way round, they would not fit.
func TestClusterHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	r := dice(t)
	resources := map[string]int{"r1": 1, "r2": 1, "r3": 2, "r4": 2}
	l := layout{models: map[string][]string{}, grace: patience, reattach: patience, keepalive: 10 * time.Millisecond, log: "info"}
	var backends []*backend.Backend
	for m, capacity := range resources {
		b := newBackend(t, backend.Options{Limit: capacity, Default: backend.Plan{Tokens: 3, Pace: 40 * time.Millisecond}})
		backends = append(backends, b)
		l.providers = append(l.providers, provider{id: "p-" + m, url: b.URL(), capacity: capacity})
		l.models[m] = []string{"p-" + m}
	}
	c := newCluster(t, l, 3)
	shapes := partitions()
	if !long() { // the leader alone, and one drawn
		shapes = []rift{shapes[0], shapes[1+r.IntN(len(shapes)-1)]}
	}
	fewer, turned := false, false
	for _, s := range shapes {
		leader, fs := c.leader(), c.followers()
		var all sync.WaitGroup
		var stop atomic.Bool
		var list []*inquiry
		began := time.Now()
		for m, capacity := range resources {
			q := &inquiry{c: c, model: m, capacity: capacity, began: began}
			list = append(list, q)
			for k := range 3 + 2*capacity {
				own := rand.New(rand.NewPCG(r.Uint64(), uint64(k)))
				all.Go(func() { q.client(own, k%3, &stop, k == 0) })
			}
		}
		end := func() { stop.Store(true); all.Wait() }
		t.Cleanup(end)
		now := func() int64 { return int64(time.Since(began)) }
		flows := func() { // some of the history is from before, some from afterwards
			for _, q := range list {
				n := q.over.Load() + 4
				await(t, q.model+" is served", func() bool { return q.over.Load() >= n })
			}
		}
		flows()
		from := now()
		gone, _ := s.cut(c, leader, fs[0], fs[1])
		for _, i := range gone {
			await(t, c.id(i)+" is not ready", func() bool { return get(t, c.at(i).edge.openai, "/readyz") == http.StatusServiceUnavailable })
		}
		time.Sleep(time.Duration(500+r.IntN(3500)) * time.Millisecond) // sessions of who is gone are ended after three seconds
		c.heal()
		for i := range c.replicas {
			await(t, c.id(i)+" is ready", func() bool { return get(t, c.at(i).edge.openai, "/readyz") == http.StatusOK })
		}
		c.awaitLinks("n1")
		away := &absence{gone: gone, from: from, to: now()}
		flows()
		end()
		c.at(0).awaitIdle()
		for _, q := range list {
			q.judge(s.name, away)
			fewer = fewer || q.capacity > 1 && q.fits(q.capacity-1, false, away) == porcupine.Illegal
			turned = turned || q.fits(q.capacity, true, away) == porcupine.Illegal
		}
		if t.Failed() {
			return
		}
	}
	if !fewer || !turned {
		t.Errorf("the histories show too little: one can't be with a slot less: %v, one can't be of a queue the wrong way round: %v", fewer, turned)
	}
	for _, b := range backends {
		if s := b.Stats(); s.Violations != 0 {
			t.Errorf("a backend got more than its capacity: %+v", s)
		}
	}
	c.sameStates()
}
