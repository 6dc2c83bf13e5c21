package admin_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

// flagSeed repeats one run of TestLivePicturesOfRandomWorlds; 0 = new ones.
var flagSeed = flag.Uint64("seed", 0, "seed of the random worlds; 0 = new ones")

// viewerOf is somebody who looks at a feed when it pleases him.
type viewerOf struct {
	adminapi.Picture
	seen uint64
	lazy int // he looks once in that many ticks
}

// look takes what the feed has for him.
func (v *viewerOf) look(t *testing.T, feed *admin.Feed, now time.Time) {
	t.Helper()
	events, seq, err := feed.Next(v.seen, now)
	if err != nil {
		t.Fatal(err)
	}
	v.seen = seq
	for _, e := range events {
		if err := v.Apply(frameOf(t, e)); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever happens, however slow the viewers are and whatever the wall clock does: what each adds up is what is.
func TestLivePicturesOfRandomWorlds(t *testing.T) {
	seeds := []uint64{*flagSeed}
	if *flagSeed == 0 {
		seeds = make([]uint64, 40)
		for i := range seeds {
			seeds[i] = rand.Uint64() | 1
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { randomPictures(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomPictures(t *testing.T, r *rand.Rand) {
	w := busy(t)
	x := &chance{Rand: r, w: w, s: 2, generations: map[fsm.NodeID]fsm.Generation{"studio": 1}}
	feed := admin.NewFeed(admin.Options{Source: w, Edge: "edge-1"}, time.Second)
	now := time.Unix(1_800_000_000, 0)
	viewers := make([]viewerOf, 6)
	for i := range viewers {
		viewers[i].lazy = 1 + i*i/2
	}
	for range 150 {
		for range r.IntN(4) {
			x.step()
		}
		switch now = now.Add(time.Second); r.IntN(20) {
		case 0: // a viewer that was held up between the clock and the lock
			now = now.Add(-time.Second)
		case 1: // somebody sets the clock
			now = now.Add(time.Duration(r.IntN(7200)-3600) * time.Second)
		}
		for i := range viewers {
			v := &viewers[i]
			switch {
			case r.IntN(60) == 0: // he connects anew
				*v = viewerOf{lazy: v.lazy}
			case r.IntN(v.lazy) == 0:
				v.look(t, feed, now)
			}
		}
	}
	// The clock goes on, by two ticks: then all have what is.
	for range 2 {
		now = now.Add(time.Second)
		for i := range viewers {
			viewers[i].look(t, feed, now)
		}
	}
	var fresh viewerOf
	feed2 := admin.NewFeed(admin.Options{Source: w, Edge: "edge-1"}, time.Second) // one that has seen nothing of it
	fresh.look(t, feed2, now)
	want := rowsOf(t, &fresh.Picture)
	for i := range viewers {
		if got := rowsOf(t, &viewers[i].Picture); got != want {
			t.Fatalf("viewer %d:\n got %s\nwant %s", i, got, want)
		}
	}
}

// rowsOf is a picture without the feed's own numbers.
func rowsOf(t *testing.T, p *adminapi.Picture) string {
	t.Helper()
	p.Head.Seq = 0
	return pictured(t, p)
}

// chance does something to a world.
type chance struct {
	*rand.Rand
	w           *world
	s           fsm.SessionID
	generations map[fsm.NodeID]fsm.Generation
	admitted    int
}

func (x *chance) step() {
	w := x.w
	node := []fsm.NodeID{"studio", "tower"}[x.IntN(2)]
	some := fsm.RequestID(fmt.Sprint("x-", max(0, x.admitted-x.IntN(20))))
	switch x.IntN(12) {
	case 0, 1, 2, 3:
		// Ids come again, as those with an Idempotency-Key do.
		x.admitted++
		id := fsm.RequestID(fmt.Sprint("x-", x.admitted-x.IntN(2)))
		model := []fsm.ModelID{"both", "ornith:35b", "agent"}[x.IntN(3)]
		w.do(x.s, &fsm.Admit{Request: id, Model: model, Class: fsm.Class(x.IntN(2)), InputTokens: 5, Needs: fsm.NeedChat})
	case 4, 5:
		var leases []fsm.LeaseID
		w.View(func(m *fsm.Machine) {
			for _, l := range m.Leases() {
				leases = append(leases, l.Lease)
			}
		})
		if len(leases) > 0 {
			w.do(x.s, &fsm.Release{Lease: leases[x.IntN(len(leases))], Reason: fsm.ReasonDone, Requeue: x.IntN(4) == 0})
		}
	case 6:
		w.do(0, &fsm.Evict{Request: some})
	case 7:
		w.do(x.s, &fsm.Cancel{Request: some})
	case 8:
		w.do(0, &fsm.Drain{Node: node, On: x.IntN(3) == 0})
	case 9:
		w.now += fsm.Time(x.IntN(12)) * fsm.Second
		w.do(0, &fsm.Expire{})
	case 10:
		if g := x.generations[node]; g != 0 {
			w.do(x.s, &fsm.LinkLost{Node: node, Generation: g, Reason: fsm.ReasonHeartbeat})
			delete(x.generations, node)
		} else {
			// A session that has just begun may be refused, since the link of the one before is not given up yet.
			if o := w.do(x.s, &fsm.RegisterNode{Node: node, Instance: 9})[0]; o.Code == fsm.Registered {
				w.do(x.s, &fsm.NodeReady{Node: node, Generation: o.Generation})
				x.generations[node] = o.Generation
			}
		}
	case 11:
		if x.IntN(3) == 0 { // the edge starts anew
			x.s = w.open("edge-1")
			clear(x.generations)
		} else {
			w.do(x.s, &fsm.SetHealth{Node: node, Generation: x.generations[node], Provider: "mac", Health: fsm.Health(x.IntN(2)), Cause: "x"})
		}
	}
}
