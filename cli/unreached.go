package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"

	"iop/edged/adminapi"
)

// unreached says what to do when no edge answered: why is told by the errors of all addresses, the cure is that of the
// first that tells more than that nobody listens there.
func unreached(err *adminapi.UnreachableError) string {
	cures := make([]string, 0, len(err.Attempts))
	for _, a := range err.Attempts {
		cures = append(cures, attemptCure(a))
	}
	for _, cure := range cures {
		if cure != "" {
			return cure
		}
	}
	return "start edged, or name the admin address that its ready line shows (admin=HOST:PORT) with --edge or IOP_EDGE"
}

func attemptCure(a adminapi.Attempt) string {
	var unknownCA x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert tls.AlertError
	var lookup *net.DNSError
	text := a.Err.Error()
	switch {
	case strings.Contains(text, "gave HTTP response to HTTPS client"):
		return "the admin listener speaks plain text there, as it does on loopback: leave --ca and IOP_CA out, and https:// too"
	case errors.As(a.Err, &unknownCA):
		return "its certificate is of another authority: name the right one with --ca or IOP_CA (certs/ca.pem of 'iopctl certs init')"
	case errors.As(a.Err, &wrongName):
		return "its certificate is for another name: use the name that it is for, or make one with 'iopctl certs edge' for this one"
	case errors.As(a.Err, &invalid):
		return "look at the certificate with 'iopctl certs show': if it has run out, make a new one; if not, set this machine's clock"
	case errors.As(a.Err, &alert), strings.Contains(text, "remote error: tls"):
		return "the edge speaks TLS, but not like this: look at its log, and at --ca"
	case errors.As(a.Err, &lookup):
		return "no such host: check the name in --edge or IOP_EDGE"
	case text == "no answer in time":
		return "the host or the edge is too slow or hangs, or a firewall drops what is sent: ask another edge with --edge, or wait longer with --timeout 30s"
	case errors.Is(a.Err, syscall.ECONNRESET) || strings.HasSuffix(text, "EOF") || strings.Contains(text, "malformed HTTP"):
		return "something else listens there, or it speaks TLS: name the address that edged's ready line shows as admin=, and its authority with --ca"
	}
	return ""
}
