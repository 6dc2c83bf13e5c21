package strangers

import (
	"errors"
	"net"
	"testing"
	"time"
)

// TestStrangersDoNotFloodTheLog: a fault that repeats, from ports that differ, is news once; faults made up without end
// are not all news; a minute later they are again.
func TestStrangersDoNotFloodTheLog(t *testing.T) {
	c := &Complaints{}
	news := 0
	for port := range 100 {
		from := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1000 + port}
		if c.News("nothing received", from, &net.OpError{Op: "read", Net: "tcp", Addr: from, Err: errors.New("i/o timeout")}) {
			news++
		}
	}
	if news != 1 {
		t.Errorf("one fault is news %d times", news)
	}
	for i := range 1000 {
		if c.News("refused", &net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i))}, nil) {
			news++
		}
	}
	if news != complaintsMax {
		t.Errorf("%d faults are news", news)
	}
	if !c.fresh("a minute later", time.Now().Add(complaintEvery)) || c.fresh("a minute later", time.Now()) {
		t.Error("a fault of the minute before is not news, or the same is news twice")
	}
}
