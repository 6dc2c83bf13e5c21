package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"iop/edged/nodelink"
	"iop/noded/edgelink"
)

// certificate makes a self-signed certificate for the loopback and a pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	_, strangers := certificate(t)
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		o.HandshakeTimeout = 300 * time.Millisecond
	})
	for name, config := range map[string]*tls.Config{"plain": nil, "of another trust": {RootCAs: strangers}} {
		n := startNode(t, e.address, "n1", &hands{}, func(o *edgelink.Options) { o.TLS = config })
		await(t, "the node can't connect", func() bool { return n.states.had(edgelink.PhaseLost, "") })
		n.stop(t)
		if c.node("n1").Generation != 0 {
			t.Error("accepted a node that is", name)
		}
	}
	h := newHanging(true)
	close(h.release)
	startNode(t, e.address, "n1", &hands{run: h.run}, func(o *edgelink.Options) { o.TLS = &tls.Config{RootCAs: pool} })
	ready(t, c, "n1", 1)
	x := request(c.admit(t, "r1"), strings.Repeat("large ", 1<<19))
	a := &answer{onData: func([]byte) error { return net.ErrClosed }}
	if end := e.links.Exchange(t.Context(), x, a); end.Code != nodelink.CodeAnswerFailed || a.text() != "first" {
		t.Errorf("%+v %q", end, a.text())
	}
	<-h.stopped
}
