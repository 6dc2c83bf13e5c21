package peerlink

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestUnreachableSaysTheCauseAlone(t *testing.T) {
	both(t, func(t *testing.T, options func(string) Options) {
		a := start(t, options("a"))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		gone := Member{ID: "b", Address: l.Addr().String()}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = a.Standing(t.Context(), gone)
		if want := "standing of b at " + gone.Address + ": dial tcp " + gone.Address + ": connect: connection refused"; !errors.Is(err, ErrUnreachable) || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	})
}

func TestCertificateOfAnotherIsARefusal(t *testing.T) {
	ca := newAuthority(t)
	a, b := start(t, Options{ID: "a", TLS: ca.files(ca.issue("a"))}), start(t, Options{ID: "b", TLS: ca.files(ca.issue("b"))})
	_, err := a.Standing(t.Context(), Member{ID: "c", Address: b.Addr().String()})
	if !errors.Is(err, ErrRefused) || errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), "desc =") {
		t.Errorf("%v", err)
	}
}
