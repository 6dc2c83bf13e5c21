package edgelink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// explainOpen says why a link could not be opened and what it may mean, with secure telling whether it was tried with
// TLS. In TLS 1.3 a node hears only after its handshake what the edge thinks of its certificate.
func explainOpen(err error, secure bool) error {
	err = plain(err)
	text, cure := err.Error(), ""
	switch {
	case strings.Contains(text, "remote error: tls: certificate required"):
		cure = "the edge asks nodes for a certificate: set node.tls.cert and node.tls.key (iopctl certs node ID)"
	case strings.Contains(text, "remote error: tls: expired certificate"):
		cure = "this node's certificate has ended: iopctl certs node ID --renew"
	case strings.Contains(text, "remote error: tls:"):
		cure = "the edge does not accept this node's certificate: it must be signed by the authority in edge.tls.client_ca"
	case strings.Contains(text, "looked like an HTTP/1.1 header"):
		cure = "that is no node listener: name the address that edged's ready line shows as node=HOST:PORT"
	case !secure && strings.Contains(text, "error reading server preface"):
		cure = "the edge may speak TLS there: set node.tls.enabled: true"
	case strings.Contains(text, "connection refused"), strings.Contains(text, "actively refused"): // Windows says the latter
		cure = "start edged there, or correct the port: its ready line shows the node listener as node=HOST:PORT"
	case strings.Contains(text, "no such host"):
		cure = "correct the host in node.edges, or the name service of this machine"
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", err, cure)
}

// openError is an error without gRPC's words around it.
type openError struct {
	text string
	err  error
}

func (e *openError) Error() string { return e.text }
func (e *openError) Unwrap() error { return e.err }

// plain returns what this package's dialling said, or the connection, out of what gRPC makes of it.
func plain(err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.Unavailable {
		return err
	}
	text := s.Message()
	if quoted, ok := strings.CutPrefix(text, "connection error: desc = "); ok {
		if inner, err := strconv.Unquote(quoted); err == nil {
			text = strings.TrimPrefix(inner, "transport: Error while dialing: ")
		}
	}
	return &openError{text, err}
}
