package strangers

import (
	"net"
	"testing"
)

// from is a connection from a host that notes its end.
type from struct {
	net.Conn
	host  byte
	ended bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, f.host), Port: 1} }
func (f *from) Close() error         { f.ended = true; return nil }

// TestStrangersKeepNobodyOut: one host that fills the threshold with connections that say nothing gets no more of them, and
// makes room for others.
func TestStrangersKeepNobodyOut(t *testing.T) {
	d := NewThreshold(4)
	var loud []*from
	for range 4 {
		loud = append(loud, &from{host: 1})
		if d.Enter(loud[len(loud)-1]) == nil {
			t.Fatal("turned away with room left")
		}
	}
	if d.Enter(&from{host: 1}) != nil {
		t.Error("a fifth one of a host that has all")
	}
	second := &from{host: 2}
	s := d.Enter(second)
	if s == nil || !loud[0].ended || loud[1].ended {
		t.Fatalf("another host was let in: %v; the oldest of the loud one ended: %v, the next: %v", s != nil, loud[0].ended, loud[1].ended)
	}
	if d.Enter(&from{host: 3}) == nil || second.ended {
		t.Error("who has one connection had to make room, or a third host none")
	}
	if d.Enter(&from{host: 2}) != nil {
		t.Error("a host took room from one that would then have fewer")
	}
	for range 2 { // the second time nothing happens
		if d.Leave(s) {
			t.Error("it had been turned away")
		}
	}
	again := d.Enter(&from{host: 1})
	if again == nil {
		t.Error("no room for one after one has left")
	}
	if d.Enter(&from{host: 1}) != nil {
		t.Error("room for two after one has left")
	}
	d.Close()
	if !loud[3].ended || d.Enter(&from{host: 4}) != nil {
		t.Error("it is not closed")
	}
}
