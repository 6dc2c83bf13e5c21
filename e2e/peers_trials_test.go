package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"iop/e2e/backend"
)

func capacityTrial() trial {
	return trial{
		title: "Capacity and order",
		text: "40 clients, one each 50 ms, half of them by each of two model names; the backend can take 4 and holds them until all have come. " +
			"Then the runs end one by one, the next when the place is taken. May wait: 100 requests, 60 s.",
		columns: []string{"most at the backend at once", "clients", "who waited was served"},
		run: func(t *testing.T, p peer) []string {
			b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
			g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: time.Minute})
			all := g.fill(t, b, 0, 40, false)
			time.Sleep(10 * peersGap)
			peak, arrived := b.Stats().Peak, b.Stats().Total
			letOneByOne(t, b, all)
			peak = max(peak, b.Stats().Peak)
			order := orderCell(b.Tags(), arrived, 40)
			t.Logf("at the backend: %v", b.Tags())
			p.promise(t, peak == peersCapacity && order == "as they came" && fates(all) == "40 served", "capacity, order, all served")
			return []string{fmt.Sprint(peak), fates(all), order}
		},
	}
}

func boundTrial() trial {
	return trial{
		title: "A full queue, and waiting too long",
		text: "1,000 clients, one each 2 ms, at a backend that holds its 4 runs. May wait: 100 requests, 3 s. " +
			"At once is within 1.5 s of asking. What still waits after 10 s would wait on.",
		columns: []string{"at the backend at once", "answered at once", "answered after waiting", "wait on", "the 1,000th", "Retry-After"},
		run:     bound,
	}
}

func bound(t *testing.T, p peer) []string {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: 3 * time.Second})
	all := g.fill(t, b, 0, peersCapacity, false)
	for i := peersCapacity; i < 1000; i++ {
		all = append(all, g.send(t, i, ask{tag: tag(i)}))
		time.Sleep(2 * time.Millisecond)
	}
	var soon, late, on []*guest
	end := time.Now().Add(10 * time.Second)
	for _, x := range all {
		switch {
		case !x.over(time.Until(end)):
			on = append(on, x)
		case x.took < 1500*time.Millisecond:
			soon = append(soon, x)
		default:
			late = append(late, x)
		}
	}
	peak, last := b.Stats().Peak, "waits on"
	if slices.Contains(soon, all[999]) {
		last = all[999].fate() + " at once"
	} else if slices.Contains(late, all[999]) {
		last = all[999].fate() + " later"
	}
	waits := max(0, len(on)-b.Stats().Held)
	retry := "no"
	for _, x := range append(soon, late...) {
		if x.got.header.Get("Retry-After") != "" {
			retry = "yes"
		}
	}
	b.LetAll()
	waitAll(t, all)
	p.promise(t, peak == peersCapacity && len(late) == 100 && last == "429 at once" && retry == "yes", "capacity, a bounded queue with a deadline")
	return []string{fmt.Sprint(peak), orNone(fates(soon)), orNone(fates(late) + after(late)), fmt.Sprint(waits), last, retry}
}

// after is the median of the time that answers took.
func after(guests []*guest) string {
	if len(guests) == 0 {
		return ""
	}
	var took []time.Duration
	for _, x := range guests {
		took = append(took, x.took)
	}
	return fmt.Sprintf(" after %.1f s", median(took).Seconds())
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func orNone(s string) string { return or(s, "none") }

func reloadTrial() trial {
	return trial{
		title: "A new configuration while requests wait",
		text: "4 streams are held in their middle, 12 clients wait; then the configuration gets one route (iop: one model) more, and 8 clients come. " +
			"When all have come the runs end one by one.",
		columns: []string{"most at the backend at once", "the 4 streams", "the 12 who waited", "the 8 who came after", "served in order, of those who waited"},
		run: func(t *testing.T, p peer) []string {
			b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
			g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: time.Minute})
			if g.reload == nil {
				return []string{"has no such configuration", "", "", "", ""}
			}
			all := g.fill(t, b, 0, 16, true)
			g.reload()
			all = append(all, g.fill(t, b, 16, 24, true)...)
			time.Sleep(20 * peersGap)
			peak, first := b.Stats().Peak, b.Stats().Total
			letOneByOne(t, b, all)
			peak = max(peak, b.Stats().Peak)
			order := orderCell(b.Tags()[min(first, len(b.Tags())):], peersCapacity, 24)
			p.promise(t, peak == peersCapacity && fates(all) == "24 served" && order == "as they came", "nothing is lost, doubled or overtaken by a refresh")
			return []string{fmt.Sprint(peak), fates(all[:4]), fates(all[4:16]), fates(all[16:]), order}
		},
	}
}

func reloadLoadTrial() trial {
	return trial{
		title: "New configurations under load",
		text: "16 clients that keep their connections ask again and again for 4 s (a refused one pauses 20 ms), runs take 20 ms; " +
			"meanwhile five new configurations, the first after 0.5 s. Broken is an answer that did not come, or did not come whole.",
		columns: []string{"most at the backend at once", "served", "refused", "broken"},
		run: func(t *testing.T, p peer) []string {
			b := newBackend(t, backend.Options{Default: backend.Plan{First: 20 * time.Millisecond}})
			g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: time.Minute})
			if g.reload == nil {
				return []string{"has no such configuration", "", "", ""}
			}
			var load closedLoad
			load.run(g, 16, 4*time.Second)
			for range 5 {
				time.Sleep(500 * time.Millisecond)
				g.reload()
			}
			load.all.Wait()
			peak := b.Stats().Peak
			p.promise(t, peak <= peersCapacity && load.broken == 0 && load.refused == 0, "nothing is lost by a refresh")
			return []string{fmt.Sprint(peak), fmt.Sprint(load.served), fmt.Sprint(load.refused), fmt.Sprint(load.broken)}
		},
	}
}

// closedLoad are clients that ask again and again over connections that they keep.
type closedLoad struct {
	all                     sync.WaitGroup
	mu                      sync.Mutex
	served, refused, broken int
}

func (l *closedLoad) run(g *gateway, clients int, d time.Duration) {
	end := time.Now().Add(d)
	for i := range clients {
		l.all.Go(func() {
			c := &http.Client{Transport: &http.Transport{}, Timeout: patience}
			defer c.CloseIdleConnections()
			for time.Now().Before(end) {
				l.count(callBy(c, g, ask{tag: "load", model: []string{"a", "b"}[i%2], header: g.header}))
			}
		})
	}
}

func (l *closedLoad) count(status int, err error) {
	l.mu.Lock()
	switch {
	case err != nil:
		l.broken++
	case status == 200:
		l.served++
	default:
		l.refused++
	}
	l.mu.Unlock()
	if status != 200 {
		time.Sleep(20 * time.Millisecond)
	}
}

func killTrial() trial {
	return trial{
		title: "kill -9 of the gateway", whole: true,
		text: "4 streams run, 8 clients wait; kill -9, and the gateway is started again. 4 others come first and take what is free (no gateway keeps a slot " +
			"for a client who is not there, iop neither). Then the 8 try again until they are served (Idempotency-Key as before), the last first, one each 50 ms. " +
			"Once with a backend that ends a run when its caller is gone, once with one that does not notice.",
		columns: []string{"most at the backend at once afterwards", "the 8", "in the order they had", "most at once, if the backend does not notice"},
		run: func(t *testing.T, p peer) []string {
			most, guests, order := killed(t, p, false)
			p.promise(t, most <= peersCapacity && order == "as they came" && fates(guests) == "8 served", "places are kept over kill -9")
			deaf, _, _ := killed(t, p, true)
			return []string{fmt.Sprint(most), fates(guests), order, fmt.Sprint(deaf)}
		},
	}
}

// killed is one kill and what the clients see who come again.
func killed(t *testing.T, p peer, deaf bool) (most int, guests []*guest, order string) {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1, Deaf: deaf}})
	g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: time.Minute})
	before := g.fill(t, b, 0, 12, true)
	time.Sleep(10 * peersGap)
	g.kill()
	waitAll(t, before)
	waited := b.Stats().Total < 12 // else all were at the backend, and nobody had a place
	if !deaf {
		await(t, "the backend has noticed", func() bool { return b.Stats().Current == 0 })
	}
	g.restart()
	n := b.Stats().Total
	for i := 12; i < 16; i++ {
		guests = append(guests, g.insist(t, i, ask{tag: tag(i), stream: true, key: tag(i)}))
		await(t, "the other has a slot", func() bool { return b.Stats().Total > n+i-12 })
	}
	for i := 11; i >= 4; i-- {
		guests = append(guests, g.insist(t, i, ask{tag: tag(i), stream: true, key: tag(i)}))
		time.Sleep(peersGap)
	}
	time.Sleep(time.Second)
	if deaf {
		b.LetAll()
		waitAll(t, guests)
	} else {
		letOneByOne(t, b, guests)
	}
	if order = "nobody waited"; waited {
		order = orderCell(b.Tags()[n:], 4, 12)
	}
	return mostSince(b, n), guests[4:], order
}

func breakTrial() trial {
	return trial{
		title: "The backend breaks",
		text: "The backend resets its connection after two tokens of a stream; in the middle of a plain answer that has a Content-Length; and before it has " +
			"answered anything. A clean end is one that a client can't tell from a whole answer without knowing `[DONE]`.",
		columns: []string{"the stream ends", "the plain answer ends", "nothing answered", "runs for one request"},
		run: func(t *testing.T, p peer) []string {
			b := newBackend(t, backend.Options{Default: backend.Plan{Drop: backend.AfterTokens, At: 2}})
			g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: time.Minute})
			var row []string
			for i, a := range []ask{{stream: true}, {}} {
				x := g.send(t, i, ask{tag: tag(i), stream: a.stream})
				waitAll(t, []*guest{x})
				row = append(row, ending(x))
			}
			p.promise(t, row[0] != "clean" && row[1] != "clean", "a broken answer looks broken")
			b.Set(backend.Plan{Drop: backend.BeforeHead})
			before := b.Stats().Total
			x := g.send(t, 2, ask{tag: tag(2)})
			waitAll(t, []*guest{x})
			return append(row, x.fate(), fmt.Sprint(b.Stats().Total-before))
		},
	}
}

// ending is how a broken answer ended.
func ending(x *guest) string {
	end := "broken off"
	switch {
	case x.got.status == 0:
		end = "no answer"
	case x.got.status != 200:
		end = fmt.Sprint(x.got.status)
	case x.got.clean:
		end = "clean"
	}
	if x.ask.stream && bytes.Contains(x.got.body, []byte(`"error"`)) {
		end = "an error event, then " + end
	}
	return end
}

func leaveTrial() trial {
	return trial{
		title: "The client leaves",
		text: "Time until the backend sees that its caller is gone, median of 5: in the middle of a stream that is silent, and before the first byte. " +
			"And a client who leaves while he waits: does his request run later?",
		columns: []string{"in a silent stream", "before the first byte", "one who left the queue"},
		run: func(t *testing.T, p peer) []string {
			return []string{
				left(t, p, true, backend.Plan{Hold: backend.AfterTokens, At: 1}), left(t, p, false, backend.Plan{Hold: backend.BeforeHead}), leftQueue(t, p),
			}
		},
	}
}

// left is how long the backend takes to see that a client has left.
func left(t *testing.T, p peer, stream bool, plan backend.Plan) string {
	b := newBackend(t, backend.Options{Default: plan})
	g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: time.Minute})
	var took []time.Duration
	for i := range 5 {
		x := g.send(t, i, ask{tag: tag(i), stream: stream})
		await(t, "it runs", func() bool { return b.Stats().Held == 1 })
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		x.leave()
		for b.Stats().Aborted <= i {
			if time.Since(began) > 5*time.Second {
				p.promise(t, false, "an abort reaches the backend")
				return "not within 5 s"
			}
			time.Sleep(200 * time.Microsecond)
		}
		took = append(took, time.Since(began))
		await(t, "nothing runs", func() bool { return b.Stats().Current == 0 })
	}
	return fmt.Sprintf("%.1f ms", float64(median(took).Microseconds())/1000)
}

// leftQueue tells whether the request of a client who left the queue runs.
func leftQueue(t *testing.T, p peer) string {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	g := p.start(t, setting{backend: b.Address(), capacity: peersCapacity, queue: 100, timeout: time.Minute})
	all := g.fill(t, b, 0, 6, false)
	time.Sleep(10 * peersGap)
	if all[4].over(0) || b.Stats().Total > peersCapacity {
		return "nobody waits"
	}
	all[4].leave()
	time.Sleep(10 * peersGap)
	b.LetAll()
	waitAll(t, all)
	time.Sleep(10 * peersGap)
	ran := slices.Contains(b.Tags(), tag(4))
	p.promise(t, !ran, "who left the queue does not run")
	return map[bool]string{true: "runs", false: "does not run"}[ran]
}
