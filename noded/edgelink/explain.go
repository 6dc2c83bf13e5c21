package edgelink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
)

// explainTLS adds to a failed handshake what to do about it.
func explainTLS(err error) error {
	var header tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	cure := ""
	switch {
	case errors.As(err, &header), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		cure = "the edge may speak plain text there: set edge.tls on the edge, or node.tls.enabled: false"
	case errors.As(err, &unknown):
		cure = "node.tls.ca must be the authority that signed the edge's certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		cure = "the edge's certificate is good only from " + invalid.Cert.NotBefore.UTC().Format(time.RFC3339) + "; are the clocks right?"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		cure = "the edge's certificate ended " + invalid.Cert.NotAfter.UTC().Format(time.RFC3339) + "; renew it: iopctl certs edge ID --renew"
	case errors.As(err, &name):
		cure = "the edge's certificate does not name the address that is dialled: iopctl certs edge ID --renew --host " + name.Host + ", or set node.tls.server_name"
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", err, cure)
}

// explainOpen adds to a link that could not be opened what it may mean, with secure telling whether it was tried with
// TLS. In TLS 1.3 a node hears only after its handshake what the edge thinks of its certificate.
func explainOpen(err error, secure bool) error {
	text, cure := err.Error(), ""
	switch {
	case strings.Contains(text, "remote error: tls: certificate required"):
		cure = "the edge asks nodes for a certificate: set node.tls.cert and node.tls.key (iopctl certs node ID)"
	case strings.Contains(text, "remote error: tls: expired certificate"):
		cure = "this node's certificate has ended: iopctl certs node ID --renew"
	case strings.Contains(text, "remote error: tls:"):
		cure = "the edge does not accept this node's certificate: it must be signed by the authority in edge.tls.client_ca"
	case !secure && strings.Contains(text, "error reading server preface"):
		cure = "the edge may speak TLS there: set node.tls.enabled: true"
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", err, cure)
}
