package strangers

import (
	"net"
	"slices"
	"sync"
)

// Threshold is where connections stand that have not proved themselves. There is room for max of them. Whoever comes when
// it is full has the oldest one of the host that has the most turned away; a host that has the most itself gets no more.
// So a stranger that opens connections and says nothing keeps no others out.
type Threshold struct {
	max int

	mu       sync.Mutex
	standing []*Stranger // in the order in which they came
	shut     bool
}

// NewThreshold makes room for max connections, from 1.
func NewThreshold(max int) *Threshold { return &Threshold{max: max} }

// Stranger is a connection there.
type Stranger struct {
	conn   net.Conn
	host   string
	turned bool // away; guarded by the threshold's lock
}

// Enter returns nil if there is no room, or the threshold is closed. Leave must follow.
func (t *Threshold) Enter(conn net.Conn) *Stranger {
	s := &Stranger{conn: conn, host: hostOf(conn.RemoteAddr())}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut {
		return nil
	}
	if len(t.standing) >= t.max && !t.makeRoom(s.host) {
		return nil
	}
	t.standing = append(t.standing, s)
	return s
}

// makeRoom turns one away for a newcomer from a host.
func (t *Threshold) makeRoom(host string) bool {
	count := map[string]int{}
	for _, s := range t.standing {
		count[s.host]++
	}
	most := host
	for _, s := range t.standing { // of equal ones the first, but never for a newcomer that would then have the most
		if count[s.host] > count[most]+1 || most != host && count[s.host] > count[most] {
			most = s.host
		}
	}
	i := slices.IndexFunc(t.standing, func(s *Stranger) bool { return s.host == most })
	if most == host || i < 0 {
		return false
	}
	t.standing[i].turned = true
	_ = t.standing[i].conn.Close()
	t.standing = slices.Delete(t.standing, i, i+1)
	return true
}

// Leave takes a connection off: it has proved itself, or is gone. It tells whether it had been turned away before. More
// than one Leave does nothing.
func (t *Threshold) Leave(s *Stranger) (turned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.standing, s); i >= 0 {
		t.standing = slices.Delete(t.standing, i, i+1)
	}
	return s.turned
}

// Close turns everybody away, and who comes later.
func (t *Threshold) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = true
	for _, s := range t.standing {
		s.turned = true
		_ = s.conn.Close()
	}
	t.standing = nil
}
