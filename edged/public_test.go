package edged

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"iop/configs"
)

// Clients of the openai listener get HTTP/2 or 1.1 by TLS, as they ask for it, without a certificate of their own; the
// files are read anew at each handshake.
func TestClientsByTLS(t *testing.T) {
	dir := t.TempDir()
	files := configs.TLS{Cert: filepath.Join(dir, "edge.pem"), Key: filepath.Join(dir, "edge.key"), OpenAI: true}
	roots := x509.NewCertPool()
	renew := func() {
		c, key, chain := certificate(t, true, nil, nil)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		roots.AddCert(c)
		write(t, files.Cert, []byte(chain))
		write(t, files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	renew()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{self: &configs.Self{TLS: files}, ports: &listeners{openai: l}}
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })}
	done := make(chan error, 1)
	go func() { done <- d.servePublic(h, d.ports.openai) }()
	ask := func(protocols ...string) string {
		t.Helper()
		p := new(http.Protocols)
		p.SetHTTP1(protocols[0] == "HTTP/1.1")
		p.SetHTTP2(protocols[0] == "HTTP/2.0")
		tr := &http.Transport{Protocols: p, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "edge", MaxVersion: tls.VersionTLS12}}
		defer tr.CloseIdleConnections()
		res, err := (&http.Client{Transport: tr}).Get("https://" + l.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	for _, want := range []string{"HTTP/1.1", "HTTP/2.0"} {
		if got := ask(want); got != want {
			t.Errorf("it speaks %s, want %s", got, want)
		}
	}
	roots = x509.NewCertPool()
	renew()
	if got := ask("HTTP/2.0"); got != "HTTP/2.0" {
		t.Errorf("after a new certificate: %s", got)
	}
	_ = h.Close()
	<-done //nolint:errcheck // it was closed
}

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
