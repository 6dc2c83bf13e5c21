package peerlink

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// A fault that repeats, from ports that differ, is logged once; faults made up without end are not all logged.
func TestFaultsDoNotFloodTheLog(t *testing.T) {
	log := &record{}
	c := complaints{log: slog.New(slog.NewTextHandler(log, nil)), said: map[string]bool{}}
	lines := func() int { return strings.Count(log.String(), "\n") }
	for port := range 100 {
		from := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1000 + port}
		c.warn("nothing received", from, &net.OpError{Op: "read", Net: "tcp", Addr: from, Err: errors.New("i/o timeout")})
	}
	if lines() != 1 {
		t.Errorf("%d lines of one fault", lines())
	}
	for i := range 1000 {
		c.warn("refused", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, refused("I am replica %d", i))
	}
	if lines() != complaintsMax {
		t.Errorf("%d lines of a stranger", lines())
	}
	if !c.fresh("a minute later", time.Now().Add(complaintEvery)) {
		t.Error("nothing is logged any more")
	}
	if c.fresh("a minute later", time.Now()) {
		t.Error("the same fault again")
	}
}
