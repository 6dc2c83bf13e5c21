package noded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"iop/configs"
)

// loadTLS reads what the node file says about TLS; nil is plain text. Its error lists every file that is no good.
func loadTLS(t configs.NodeTLS) (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: t.ServerName}
	var wrong configs.Problems
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		pem, err := os.ReadFile(t.CA)
		switch {
		case err != nil:
			wrong.List = append(wrong.List, configs.Problem{Path: "node.tls.ca", Cause: err.Error(), Cure: "give the path of a PEM file"})
		case !c.RootCAs.AppendCertsFromPEM(pem):
			wrong.List = append(wrong.List, configs.Problem{Path: "node.tls.ca", Cause: t.CA + " holds no certificate", Cure: "give the PEM file of the authority"})
		}
	}
	if t.Cert != "" {
		read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
			if err != nil {
				return nil, fmt.Errorf("node.tls.cert: read %s and %s: %w", t.Cert, t.Key, err)
			}
			return &pair, nil
		}
		if _, err := read(nil); err != nil {
			wrong.List = append(wrong.List, configs.Problem{Path: "node.tls.cert", Cause: err.Error(), Cure: "give PEM files of a certificate and its key"})
		}
		c.GetClientCertificate = read // at each handshake: a renewed one needs no restart
	}
	if len(wrong.List) > 0 {
		return nil, &wrong
	}
	return c, nil
}

// hostOf is an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
