package edged

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"iop/configs"
	"iop/edged/peerlink"
)

// The files of edge.tls are read anew at each handshake, so that a renewed certificate needs no restart.

// serverTLS is for nodes and operators. nil = no TLS.
func serverTLS(c *configs.TLS) (*tls.Config, error) {
	if c.Cert == "" && c.Key == "" {
		return nil, nil
	}
	read := func() (*tls.Config, error) {
		cert, err := readCert(c)
		if err != nil {
			return nil, err
		}
		t := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
		if c.ClientCA == "" {
			return t, nil
		}
		if t.ClientCAs, err = readPool("edge.tls.client_ca", c.ClientCA); err != nil {
			return nil, err
		}
		t.ClientAuth = tls.RequireAndVerifyClientCert
		return t, nil
	}
	t, err := read()
	if err != nil {
		return nil, err
	}
	t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return read() }
	return t, nil
}

// peerTLS is for the other replicas: this one's certificate and the authority of all. nil = plain text. The error says
// which file is no good for that.
func peerTLS(s *configs.Self) (func() (*tls.Config, error), error) {
	if s.TLS.Cert == "" {
		return nil, nil
	}
	key, file := "edge.cluster.ca", s.Cluster.CA
	if file == "" {
		key, file = "edge.tls.client_ca", s.TLS.ClientCA
	}
	read := func() (*tls.Config, error) {
		cert, err := readCert(&s.TLS)
		if err != nil {
			return nil, err
		}
		pool, err := readPool(key, file)
		if err != nil {
			return nil, err
		}
		return &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool}, nil
	}
	t, err := read()
	if err != nil {
		return nil, err
	}
	if err := fitForPeers(&t.Certificates[0], t.ClientCAs, s, key); err != nil {
		return nil, err
	}
	return read, nil
}

// fitForPeers tells why the other replicas would not accept a certificate, nil if they do.
func fitForPeers(pair *tls.Certificate, authority *x509.CertPool, s *configs.Self, key string) error {
	c, between := pair.Leaf, x509.NewCertPool()
	for _, raw := range pair.Certificate[1:] {
		if i, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(i)
		}
	}
	cure := "issue one: iopctl certs edge " + s.ID
	if !peerlink.Names(c, s.ID) {
		return fmt.Errorf("edge.tls.cert: %s names %s, not this replica, %s; %s", s.TLS.Cert, strings.Join(c.DNSNames, ", "), s.ID, cure)
	}
	if time.Now().After(c.NotAfter) {
		return fmt.Errorf("edge.tls.cert: %s ended %s; %s --renew", s.TLS.Cert, c.NotAfter.UTC().Format(time.RFC3339), cure)
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := c.Verify(x509.VerifyOptions{Roots: authority, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}})
		if err != nil {
			return fmt.Errorf("edge.tls.cert: %s is not good by %s: %w; %s", s.TLS.Cert, key, err, cure)
		}
	}
	return nil
}

func readCert(c *configs.TLS) (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return cert, fmt.Errorf("edge.tls: read %s and %s: %w", c.Cert, c.Key, err)
	}
	return cert, nil
}

func readPool(key, file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", key, file)
	}
	return pool, nil
}
