package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of certificates and what they hold.
const (
	authorityFile    = "ca.pem"
	authorityKeyFile = "ca-key.pem"
	certFile         = "cert.pem"
	keyFile          = "key.pem"
	pemCert          = "CERTIFICATE"
	pemKey           = "PRIVATE KEY"
)

// pairPath is where a certificate and its key are.
type pairPath struct{ cert, key string }

func authorityPair(dir string) pairPath {
	return pairPath{filepath.Join(dir, authorityFile), filepath.Join(dir, authorityKeyFile)}
}

func issuedPair(dir string, k kind, id string) pairPath {
	home := filepath.Join(dir, string(k)+"s", id)
	return pairPath{filepath.Join(home, certFile), filepath.Join(home, keyFile)}
}

// pair is a certificate, nil if there is none yet, and its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// prepare gives a new key, or what there is if it is to be renewed. It refuses to replace anything unasked.
func (at pairPath) prepare(f *certFlags, what string) (*pair, error) {
	if f.renew {
		p, err := readPair(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &faultError{code: ExitFailure, err: fmt.Errorf("there is no %s to renew: %w", what, err), cure: "make it without --renew"}
		}
		return p, err
	}
	for _, path := range []string{at.cert, at.key} {
		if _, err := os.Lstat(path); err == nil && !f.force {
			return nil, &faultError{
				code: ExitFailure, err: fmt.Errorf("%s is there already", path),
				cure: "--renew makes a new certificate for its key, --force replaces both",
			}
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return &pair{key: key}, nil
}

// readPair reads both and sees to it that they belong together.
func readPair(at pairPath) (*pair, error) {
	cert, err := readCert(at.cert)
	if err != nil {
		return nil, err
	}
	key, err := readKey(at.key)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%s is not the key of %s", at.key, at.cert)
	}
	return &pair{cert: cert, key: key}, nil
}

func readCert(path string) (*x509.Certificate, error) {
	raw, err := readPEM(path, pemCert)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", path, err)
	}
	return cert, nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	raw, err := readPEM(path, pemKey)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(raw)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", path, err)
	}
	ours, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key %s is not one that iopctl certs made", path)
	}
	return ours, nil
}

func readPEM(path, what string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != what {
		return nil, fmt.Errorf("%s does not begin with a %s in PEM form", path, what)
	}
	return block.Bytes, nil
}

// write puts a certificate, and its key if that is new, on the disk: the key first, so that no daemon sees a
// certificate without it.
func (at pairPath) write(cert *x509.Certificate, key *ecdsa.PrivateKey, withKey bool) error {
	if err := os.MkdirAll(filepath.Dir(at.cert), 0o700); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	if withKey {
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return fmt.Errorf("encode the key: %w", err)
		}
		if err := writePEM(at.key, pemKey, raw); err != nil {
			return err
		}
	}
	return writePEM(at.cert, pemCert, cert.Raw)
}

func writePEM(path, what string, raw []byte) error {
	var text bytes.Buffer
	if err := pem.Encode(&text, &pem.Block{Type: what, Bytes: raw}); err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return writePrivate(path, text.Bytes())
}

// writePrivate replaces a file by one that only its owner reads; who reads meanwhile gets the old one or the new one.
func writePrivate(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// clockSlack is how far behind the clock of another machine may be.
const clockSlack = time.Hour

func template(subject string, until time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"iop"}, CommonName: subject},
		NotBefore: time.Now().Add(-clockSlack), NotAfter: until, BasicConstraintsValid: true,
	}, nil
}

// selfSigned makes the authority's own certificate. A renewed one keeps its subject, by which others find it.
func (p *pair) selfSigned(until time.Time) (*x509.Certificate, error) {
	t, err := template("iop authority", until)
	if err != nil {
		return nil, err
	}
	if p.cert != nil {
		t.Subject = p.cert.Subject
	}
	t.IsCA, t.MaxPathLenZero, t.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	return sign(t, t, p.key, p.key)
}

// signedBy makes the certificate of an edge, good for servers and clients, or of a node, good for clients.
func (p *pair) signedBy(a *pair, k kind, id string, dns []string, ips []net.IP, until time.Time) (*x509.Certificate, error) {
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter // it would be of no use
	}
	t, err := template(id, until)
	if err != nil {
		return nil, err
	}
	t.DNSNames, t.IPAddresses, t.KeyUsage = dns, ips, x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if k == kindEdge {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return sign(t, a.cert, p.key, a.key)
}

func sign(t, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	raw, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, by)
	if err != nil {
		return nil, fmt.Errorf("make the certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("the certificate made would not be understood: %w", err)
	}
	return cert, nil
}

// certNames are the names and addresses in a certificate.
func certNames(c *x509.Certificate) []string {
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
