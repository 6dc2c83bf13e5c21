package edged

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// privateAuthority gives the authority of a certificate that systems don't know, as PEM. It is looked for in the chain, then
// in the other files. "" = the system's authorities have signed it, or none of these holds it.
func privateAuthority(chainFile string, others ...string) (string, error) {
	chain, err := certificates(chainFile)
	switch {
	case err != nil:
		return "", fmt.Errorf("edge.tls.cert: %w", err)
	case len(chain) == 0:
		return "", fmt.Errorf("edge.tls.cert: %s holds no certificate", chainFile)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Intermediates: between}); err == nil {
		return "", nil
	}
	candidates := []*x509.Certificate{chain[len(chain)-1]}
	for _, file := range others {
		more, err := certificates(file)
		if err != nil {
			return "", fmt.Errorf("find the authority of edge.tls.cert: %w", err)
		}
		candidates = append(candidates, more...)
	}
	for _, c := range candidates {
		roots := x509.NewCertPool()
		roots.AddCert(c)
		own := c.Issuer.String() == c.Subject.String() // else it is in between
		if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err == nil && own {
			return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})), nil
		}
	}
	return "", nil
}

// certificates reads a PEM file; of no file there are none.
func certificates(file string) ([]*x509.Certificate, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			out = append(out, c)
		}
	}
	return out, nil
}
