package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"iop/edged/adminapi"
)

// queueLine is a row of clients at the model line, which has one slot, in an order that the test knows. The one in front
// runs and is held. Whose replica goes away comes again at another one, with its Idempotency-Key or just with the same
// request.
type queueLine struct {
	x       *rush
	name    string
	seen    int // runs before
	clients []*queuer
}

// queuer is a client in the line.
type queuer struct {
	ask   ask
	done  chan *job
	asked *job // what came over done
}

// lineUp puts one client after the other into the line, through the given replicas in turn; the first of them runs.
func (x *rush) lineUp(name string, at ...int) *queueLine {
	x.c.t.Helper()
	l := &queueLine{x: x, name: name, seen: x.line.Stats().Total}
	for k, i := range at {
		a := ask{model: "line", tag: fmt.Sprint(name, "-", k), stream: k%2 == 0}
		if k%3 != 1 {
			a.key = a.tag
		}
		l.join(a, i)
		await(x.c.t, fmt.Sprintf("%s stands in line", a.tag), func() bool {
			if k == 0 {
				return x.line.Stats().Held == 1
			}
			return len(l.waiters(i)) == k
		})
	}
	return l
}

func (l *queueLine) join(a ask, at int) {
	q := &queuer{ask: a, done: make(chan *job, 1)}
	l.clients = append(l.clients, q)
	l.x.wait.Go(func() {
		j := &job{ask: a}
		if t := l.x.try(j, at, 0); !t.whole() {
			if a.key == "" {
				l.awaitDetached(at)
			}
			l.x.serve(j, (at+1)%len(l.x.c.replicas), 0)
		}
		q.done <- j
	})
}

// awaitDetached waits, for a client without a key, until the others know that its replica is gone: only then is its place
// for whoever sends the same request. Before, it would be another client's.
func (l *queueLine) awaitDetached(at int) {
	for l.x.ctx.Err() == nil {
		var list adminapi.WaiterList
		text, err := tryFetch(l.x.c.own((at+1)%len(l.x.c.replicas), 9080), "/queue")
		if err == nil && json.Unmarshal(text, &list) == nil && slices.ContainsFunc(list.Waiters, func(w adminapi.Waiter) bool {
			return w.Model == "line" && w.State == "detached" && w.Edge == l.x.c.id(at)
		}) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waiters are those in line, as a replica sees them.
func (l *queueLine) waiters(at int) []adminapi.Waiter {
	l.x.c.t.Helper()
	return slices.DeleteFunc(l.x.c.at(at).waiters(), func(w adminapi.Waiter) bool { return w.Model != "line" })
}

// awaitWaiting waits until n clients wait in line, none of them detached or at one of the replicas that are gone, as
// another replica sees it.
func (l *queueLine) awaitWaiting(at, n int, gone ...int) {
	l.x.c.t.Helper()
	await(l.x.c.t, fmt.Sprintf("%d of %s wait", n, l.name), func() bool {
		ws := l.waiters(at)
		return len(ws) == n && !slices.ContainsFunc(ws, func(w adminapi.Waiter) bool {
			return w.State != "waiting" || slices.ContainsFunc(gone, func(i int) bool { return w.Edge == l.x.c.id(i) })
		})
	})
}

// next wants the n-th run of the line to be that of the client k, and lets it go on.
func (l *queueLine) next(n, k int) {
	l.x.c.t.Helper()
	l.any(n)
	if got := l.x.line.Tags()[l.seen:]; got[n] != l.clients[k].ask.tag {
		l.x.c.t.Errorf("served in the order %v, want %s as number %d", got, l.clients[k].ask.tag, n)
	}
}

// any waits for the n-th run of the line, whoever's it is, and lets it go on.
func (l *queueLine) any(n int) {
	b := l.x.line
	l.x.c.t.Helper()
	await(l.x.c.t, fmt.Sprintf("run %d of %s", n, l.name), func() bool { s := b.Stats(); return s.Held == 1 && s.Total == l.seen+n+1 })
	b.Let(1)
}

// served wants that a client has its whole answer, and returns the id of its request.
func (l *queueLine) served(k int) string {
	t, q := l.x.c.t, l.clients[k]
	t.Helper()
	select {
	case q.asked = <-q.done:
		last := q.asked.tries[len(q.asked.tries)-1]
		if text := last.answer.text(); !last.whole() || text != " 1 2 3" {
			t.Errorf("%s got %q at last", q.ask.tag, text)
		}
		return last.answer.header.Get("x-request-id")
	case <-time.After(patience):
		t.Fatalf("%s was not served", q.ask.tag)
		return ""
	}
}

// serve lets one after the other run and wants them in their order, each once and whole.
func (l *queueLine) serve() {
	l.x.c.t.Helper()
	for k := range l.clients {
		l.next(k, k)
	}
	for k := range l.clients {
		l.served(k)
	}
	if n := l.x.line.Stats().Total - l.seen; n != len(l.clients) {
		l.x.c.t.Errorf("%d runs for %d clients in %s", n, len(l.clients), l.name)
	}
}

// inOrder wants some of the line to have been served one after the other.
func (l *queueLine) inOrder(ks ...int) {
	t := l.x.c.t
	t.Helper()
	tags, at := l.x.line.Tags()[l.seen:], -1
	for _, k := range ks {
		i := slices.Index(tags, l.clients[k].ask.tag)
		if i <= at {
			t.Errorf("served in the order %v, want %v in their order", tags, ks)
		}
		at = i
	}
}

// attached tells whether nobody in line is without a replica, as a replica sees it.
func (l *queueLine) attached(at int) bool {
	return !slices.ContainsFunc(l.waiters(at), func(w adminapi.Waiter) bool { return w.State != "waiting" })
}
