package edgelink

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// certFor makes a certificate that signs itself.
func certFor(t *testing.T, host string, from, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// TestTLSFaultsSayWhatToDo dials real listeners whose certificates are wrong in one way each.
func TestTLSFaultsSayWhatToDo(t *testing.T) {
	now, hour := time.Now(), time.Hour
	good := certFor(t, "127.0.0.1", now.Add(-hour), now.Add(hour))
	for _, c := range []struct {
		name     string
		server   *tls.Config // nil: plain text
		trusted  tls.Certificate
		want     string
		wantOpen string // if the handshake does well
	}{
		{name: "good", server: &tls.Config{Certificates: []tls.Certificate{good}}, trusted: good},
		{name: "unknown authority", server: &tls.Config{Certificates: []tls.Certificate{certFor(t, "127.0.0.1", now.Add(-hour), now.Add(hour))}}, trusted: good, want: "node.tls.ca must be the authority"},
		{name: "another name", server: &tls.Config{Certificates: []tls.Certificate{certFor(t, "gw", now.Add(-hour), now.Add(hour))}}, want: "--renew --host 127.0.0.1"},
		{name: "ended", server: &tls.Config{Certificates: []tls.Certificate{certFor(t, "127.0.0.1", now.Add(-2*hour), now.Add(-hour))}}, want: "certificate ended"},
		{name: "not yet", server: &tls.Config{Certificates: []tls.Certificate{certFor(t, "127.0.0.1", now.Add(hour), now.Add(2*hour))}}, want: "are the clocks right"},
		{name: "plain text", trusted: good, want: "may speak plain text"},
		{name: "wants a certificate", server: &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert}, trusted: good, wantOpen: "iopctl certs node ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan struct{})
			defer func() { _ = l.Close(); <-served }()
			go func() { defer close(served); answerOnce(l, c.server) }()
			trusted := c.trusted
			if trusted.Leaf == nil && c.server != nil {
				trusted = c.server.Certificates[0]
			}
			pool := x509.NewCertPool()
			pool.AddCert(trusted.Leaf)
			link := &Link{o: Options{Address: l.Addr().String(), DialTimeout: 5 * time.Second, TLS: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}}}
			conn, raw, err := link.dial(t.Context())
			if err == nil {
				defer func() { _ = raw.Close() }()
				_, err = conn.Read(make([]byte, 1))
				if c.wantOpen == "" && err != nil {
					t.Fatal(err)
				}
				if c.wantOpen != "" {
					err = explainOpen(err, true)
				}
			}
			want := c.want + c.wantOpen
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// answerOnce accepts a connection and says a byte, in TLS if there is a configuration.
func answerOnce(l net.Listener, c *tls.Config) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if c == nil {
		_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		return
	}
	s := tls.Server(conn, c)
	if s.HandshakeContext(context.Background()) == nil {
		_, _ = s.Write([]byte("x"))
	}
}

func TestPlainTextToTLSSaysWhatToDo(t *testing.T) {
	err := explainOpen(errors.New(`connection error: desc = "error reading server preface: EOF"`), false)
	if !strings.Contains(err.Error(), "node.tls.enabled: true") {
		t.Error(err)
	}
	if err := explainOpen(errors.New("broken pipe"), false); err.Error() != "broken pipe" {
		t.Error(err)
	}
}
