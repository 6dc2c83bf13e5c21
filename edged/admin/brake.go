package admin

import (
	"net/netip"
	"sync"
	"time"
)

// brake slows those down who try tokens: after wrongMax wrong ones, those of an address are refused unheard until time has
// forgiven one. It keeps at most brakeMax addresses. Who shows no token at all tries none.
type brake struct {
	mu    sync.Mutex // guards the rest
	tried map[netip.Prefix]*tries
}

const (
	wrongMax     = 10
	wrongForgive = 3 * time.Second // for each
	brakeMax     = 1024
)

// tries are the wrong tokens of one address that are not forgiven yet.
type tries struct {
	wrong float64
	at    time.Time
}

func (t *tries) forgive(now time.Time) {
	t.wrong = max(0, t.wrong-float64(now.Sub(t.at))/float64(wrongForgive))
	t.at = now
}

// wait tells how long what the address shows is not looked at; 0 = it is.
func (b *brake) wait(from string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tried[network(from)]
	if t == nil {
		return 0
	}
	t.forgive(now)
	if t.wrong <= wrongMax-1 {
		return 0
	}
	return time.Duration((t.wrong - (wrongMax - 1)) * float64(wrongForgive))
}

// note counts a wrong token. first: it is the first of a burst.
func (b *brake) note(from string, now time.Time) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := network(from)
	t := b.tried[at]
	if t == nil {
		b.makeRoom(now)
		t = &tries{at: now}
		b.tried[at] = t
	}
	t.forgive(now)
	first = t.wrong == 0
	t.wrong++
	return first
}

// makeRoom forgets those that are forgiven, and if none is, the one that is nearest to it. The caller holds mu.
func (b *brake) makeRoom(now time.Time) {
	if b.tried == nil {
		b.tried = map[netip.Prefix]*tries{}
	}
	if len(b.tried) < brakeMax {
		return
	}
	var least netip.Prefix
	lowest := -1.0
	for at, t := range b.tried {
		t.forgive(now)
		if t.wrong == 0 {
			delete(b.tried, at)
		} else if lowest < 0 || t.wrong < lowest {
			least, lowest = at, t.wrong
		}
	}
	if len(b.tried) >= brakeMax {
		delete(b.tried, least)
	}
}

// network is what counts as one address: of IPv6 the 64 bits that one site has.
func network(from string) netip.Prefix {
	p, err := netip.ParseAddrPort(from)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := p.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	out, _ := ip.Prefix(bits) // it can't be too many
	return out
}
