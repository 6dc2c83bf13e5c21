package nodelink

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// TestStrangersDoNotFloodTheLog: a fault that repeats, from ports that differ, is logged once; faults made up without end
// are not all logged; a minute later they are news again.
func TestStrangersDoNotFloodTheLog(t *testing.T) {
	var text strings.Builder
	c := complaints{log: slog.New(slog.NewTextHandler(&text, nil))}
	lines := func() int { return strings.Count(text.String(), "\n") }
	for port := range 100 {
		from := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1000 + port}
		c.tell("nothing received", from, &net.OpError{Op: "read", Net: "tcp", Addr: from, Err: errors.New("i/o timeout")})
	}
	if lines() != 1 {
		t.Errorf("%d lines of one fault", lines())
	}
	for i := range 1000 {
		c.tell("refused", &net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i))}, nil)
	}
	if lines() != complaintsMax {
		t.Errorf("%d lines of strangers", lines())
	}
	if !c.fresh("a minute later", time.Now().Add(complaintEvery)) || c.fresh("a minute later", time.Now()) {
		t.Error("a fault of the minute before is not news, or the same is news twice")
	}
}
