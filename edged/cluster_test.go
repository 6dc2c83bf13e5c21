package edged

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iop/configs"
	"iop/edged/peerlink"
	"iop/storage"
)

func TestClusterListenerIsOpenedWhereItIsOfUse(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*configs.Self)
		want   string
	}{
		{"the default of a single edge", func(*configs.Self) {}, ""},
		{"none wanted", func(s *configs.Self) { s.Listen.Cluster = "" }, ""},
		{"loopback", func(s *configs.Self) { s.Listen.Cluster = "127.0.0.1:7400" }, "127.0.0.1:7400"},
		{"loopback by name", func(s *configs.Self) { s.Listen.Cluster = "localhost:7400" }, "localhost:7400"},
		{"beyond loopback in plain text", func(s *configs.Self) { s.Listen.Cluster = "10.0.0.1:7400" }, ""},
		{"accepted plain text", func(s *configs.Self) { s.Listen.Cluster, s.Cluster.Plaintext = "10.0.0.1:7400", true }, "10.0.0.1:7400"},
		{"TLS", func(s *configs.Self) { s.Listen.Cluster, s.TLS.Cert, s.TLS.ClientCA = "10.0.0.1:7400", "c", "ca" }, "10.0.0.1:7400"},
		{"TLS without an authority", func(s *configs.Self) { s.Listen.Cluster, s.TLS.Cert = "127.0.0.1:7400", "c" }, ""},
		{"every interface, advertised", func(s *configs.Self) { s.Cluster.CA, s.TLS.Cert, s.Advertise.Cluster = "ca", "c", "gw:7400" }, ":7400"},
		{"peers", func(s *configs.Self) { s.Cluster.Peers = []configs.Peer{{ID: "edge-1"}} }, ":7400"},
	} {
		s := configs.NewEdge().Edge
		c.change(&s)
		if got := clusterAddress(&s); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPeerTLSSaysWhatIsWrong: what the other replicas would refuse is refused at the start, with a cure.
func TestPeerTLSSaysWhatIsWrong(t *testing.T) {
	dir, hour := t.TempDir(), time.Hour
	use := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	good := writeCert(t, dir, "good", "edge-1", hour, use)
	for _, c := range []struct{ cert, ca, want string }{
		{good, good, ""},
		{writeCert(t, dir, "other", "edge-2", hour, use), "", "names edge-2, not this replica, edge-1; issue one: iopctl certs edge edge-1"},
		{writeCert(t, dir, "ended", "edge-1", -hour/2, use), "", "--renew"},
		{writeCert(t, dir, "client", "edge-1", hour, use[1:]), "", "is not good by edge.cluster.ca"},
		{good, writeCert(t, dir, "stranger", "x", hour, use), "is not good by edge.cluster.ca"},
		{good, filepath.Join(dir, "nothing"), "edge.cluster.ca"},
		{good, good + "-key", "holds no certificate"},
	} {
		s := configs.Self{ID: "edge-1", TLS: configs.TLS{Cert: c.cert, Key: c.cert + "-key"}}
		if s.Cluster.CA = c.ca; c.ca == "" {
			s.Cluster.CA = c.cert
		}
		_, err := peerTLS(&s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s by %s: %v, want %q", filepath.Base(c.cert), filepath.Base(c.ca), err, c.want)
		}
	}
	mixed := configs.Self{ID: "edge-1", TLS: configs.TLS{Cert: good, Key: filepath.Join(dir, "other-key"), ClientCA: good}}
	if _, err := peerTLS(&mixed); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("a key that is another's: %v", err)
	}
	if f, err := peerTLS(&configs.Self{}); f != nil || err != nil {
		t.Errorf("without files: %v", err)
	}
}

// writeCert writes a certificate that signs itself to dir/name, and its key beside it.
func writeCert(t *testing.T, dir, name, dns string, lasts time.Duration, use []x509.ExtKeyUsage) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{dns}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lasts),
		ExtKeyUsage: use, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	for _, f := range []struct {
		path, kind string
		raw        []byte
	}{{path, "CERTIFICATE", cert}, {path + "-key", "PRIVATE KEY", raw}} {
		if err := os.WriteFile(f.path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.raw}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// The joints between store and network only convert; what they convert must mean the same on both sides.
func TestVerdictsAndErrorsMeanTheSameOnBothSides(t *testing.T) {
	for _, v := range []struct {
		peer  peerlink.Verdict
		store storage.Verdict
	}{
		{peerlink.VerdictAccepted, storage.VerdictAccepted},
		{peerlink.VerdictNotLeader, storage.VerdictNotLeader},
		{peerlink.VerdictOverloaded, storage.VerdictOverloaded},
	} {
		if storage.Verdict(v.peer) != v.store {
			t.Errorf("%v is %v", v.peer, storage.Verdict(v.peer))
		}
	}
	for _, err := range []error{storage.ErrNotLeader, storage.ErrOverloaded} {
		if back := fromPeer(fmt.Errorf("asked: %w", toPeer(err))); !errors.Is(back, err) {
			t.Errorf("%v comes back as %v", err, back)
		}
	}
	if fromPeer(nil) != nil || toPeer(nil) != nil {
		t.Error("no error became one")
	}
}
