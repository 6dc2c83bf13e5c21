package peerlink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"iop/proto/peerpb"
)

// serverTLS accepts replicas: a certificate of the authority that is good for both ends, so that a node's, which is
// good for a client only, is none.
func (n *Network) serverTLS() (*tls.Config, error) {
	c, err := n.o.TLS()
	if err != nil {
		return nil, err
	}
	c.MinVersion = tls.VersionTLS13
	c.NextProtos = []string{peerpb.ALPNCalls, peerpb.ALPNRaft}
	c.ClientAuth = tls.RequireAnyClientCert
	c.SessionTicketsDisabled = true // each handshake looks at the certificate
	c.VerifyConnection = func(s tls.ConnectionState) error { return verify(s.PeerCertificates, c.ClientCAs, "") }
	return c, nil
}

// clientTLS accepts one replica.
func (n *Network) clientTLS(id, alpn string) (*tls.Config, error) {
	c, err := n.o.TLS()
	if err != nil {
		return nil, err
	}
	c.MinVersion = tls.VersionTLS13
	c.NextProtos = []string{alpn}
	c.InsecureSkipVerify = true // in favour of verify: an id needs not be a host's name
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol != alpn {
			return refused("the other side does not speak %s; is this the cluster listener of an edge?", alpn)
		}
		return verify(s.PeerCertificates, c.ClientCAs, id)
	}
	return c, nil
}

// verify checks the other side's chain and, if id is not empty, that it is that replica.
func verify(chain []*x509.Certificate, authority *x509.CertPool, id string) error {
	if len(chain) == 0 {
		return refused("the other side shows no certificate; set edge.tls there")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	leaf := chain[0]
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: authority, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}})
		if err != nil {
			return certFault(leaf, err)
		}
	}
	if id != "" && !Names(leaf, id) {
		return refused("the certificate there is for %s, not for replica %s; correct the address in edge.cluster.peers, or issue one: iopctl certs edge %s",
			strings.Join(leaf.DNSNames, ", "), id, id)
	}
	return nil
}

func certFault(leaf *x509.Certificate, err error) error {
	whose := strings.Join(leaf.DNSNames, ", ")
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(leaf.NotBefore):
		return refused("the certificate of %s is valid only from %s; are the clocks right?", whose, leaf.NotBefore.UTC().Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return refused("the certificate of %s ended %s; renew it: iopctl certs edge ID --renew", whose, leaf.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return refused("the certificate of %s is not one of a replica, which is good for servers and clients; issue one: iopctl certs edge ID", whose)
	case errors.As(err, &unknown):
		return refused("the certificate of %s is signed by another authority than the one in edge.tls.client_ca; use one authority for all replicas", whose)
	}
	return refused("the certificate of %s: %v", whose, err)
}

// explain says what a broken handshake means, as seen by the side that dialled.
func (n *Network) explain(err error) error {
	var alert tls.AlertError
	var header tls.RecordHeaderError
	switch {
	case err == nil || errors.Is(err, ErrRefused):
		return err
	case errors.As(err, &header):
		return fmt.Errorf("the other side does not speak TLS; set edge.tls there too: %w", err)
	case errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls:"):
		return fmt.Errorf("the other side does not accept this replica's certificate, its log has the cause: %w", err)
	case errors.Is(err, peerpb.ErrMalformed) && n.o.TLS == nil:
		return fmt.Errorf("the other side does not speak plain text; set edge.tls here too: %w", err)
	case !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
		return err
	case n.o.TLS != nil:
		return fmt.Errorf("the other side ended the handshake, its log has the cause; does it speak TLS? %w", err)
	}
	return fmt.Errorf("the other side hung up, its log has the cause; does it want TLS? %w", err)
}
