package cli_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iop/cli"
)

// iopctl runs a command and returns its exit code and what it wrote.
func iopctl(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, bad bytes.Buffer
	code = cli.Run(t.Context(), cli.Deps{}, args, strings.NewReader(""), &out, &bad)
	return code, out.String(), bad.String()
}

// made runs a command that must do well.
func made(t *testing.T, args ...string) string {
	t.Helper()
	code, out, bad := iopctl(t, args...)
	if code != 0 {
		t.Fatalf("%v: code %d: %s", args, code, bad)
	}
	return out
}

// small makes an authority, an edge and a node, and returns their directory.
func small(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	made(t, "certs", "init", "--dir", dir)
	made(t, "certs", "edge", "edge-1", "--dir", dir, "--host", "gw1.lan,10.0.0.1", "--host", "fd00::1")
	made(t, "certs", "node", "gpu_node.2", "--dir", dir)
	return dir
}

func pairIn(t *testing.T, dir, kind, id string) tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(filepath.Join(dir, kind, id, "cert.pem"), filepath.Join(dir, kind, id, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func poolOf(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate in %s", file)
	}
	return pool
}

// shake does a TLS handshake of an edge with a node that dials it as name.
func shake(t *testing.T, edge, node tls.Certificate, ca *x509.CertPool, name string) error {
	t.Helper()
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	deadline := time.Now().Add(10 * time.Second)
	_, _ = near.SetDeadline(deadline), far.SetDeadline(deadline)
	served := make(chan error, 1)
	go func() {
		s := tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{edge}, ClientCAs: ca, ClientAuth: tls.RequireAndVerifyClientCert})
		err := s.HandshakeContext(context.Background())
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		_ = far.Close()
		served <- err
	}()
	c := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{node}, RootCAs: ca, ServerName: name})
	_, err := io.ReadFull(c, make([]byte, 1))
	_ = near.Close()
	if serving := <-served; err == nil {
		err = serving
	}
	return err
}

func TestCertsAreGoodForTLS(t *testing.T) {
	dir := small(t)
	edge, node := pairIn(t, dir, "edges", "edge-1"), pairIn(t, dir, "nodes", "gpu_node.2")
	ca := poolOf(t, filepath.Join(dir, "nodes", "gpu_node.2", "ca.pem"))
	for _, name := range []string{"edge-1", "gw1.lan", "10.0.0.1", "fd00::1", "localhost", "127.0.0.1"} {
		if err := shake(t, edge, node, ca, name); err != nil {
			t.Errorf("dialled as %s: %v", name, err)
		}
	}
	if err := shake(t, edge, node, ca, "edge-2"); err == nil {
		t.Error("it passes for another edge")
	}
	if err := shake(t, node, edge, ca, "gpu_node.2"); err == nil {
		t.Error("a node's certificate passes for an edge's")
	}
	if err := shake(t, edge, edge, ca, "edge-1"); err != nil {
		t.Errorf("an edge as the client of another: %v", err)
	}
	other := small(t)
	if err := shake(t, edge, pairIn(t, other, "nodes", "gpu_node.2"), ca, "edge-1"); err == nil {
		t.Error("a node of another authority is let in")
	}
}

func TestOpenSSLVerifiesCerts(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl")
	}
	dir := small(t)
	for _, args := range [][]string{
		{"verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "gw1.lan", "-CAfile", "ca.pem", "edges/edge-1/cert.pem"},
		{"verify", "-x509_strict", "-purpose", "sslclient", "-verify_ip", "10.0.0.1", "-CAfile", "ca.pem", "edges/edge-1/cert.pem"},
		{"verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", "ca.pem", "nodes/gpu_node.2/cert.pem"},
		{"pkey", "-check", "-noout", "-in", "edges/edge-1/key.pem"},
	} {
		c := exec.CommandContext(t.Context(), openssl, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("openssl %v: %v\n%s", args, err, out)
		}
	}
}

func TestCertsArePrivateAndKept(t *testing.T) {
	dir := small(t)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s can be read by others: %v", path, info.Mode())
		}
		if strings.HasPrefix(d.Name(), ".new-") {
			t.Errorf("%s was left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before := pairIn(t, dir, "edges", "edge-1")
	for _, args := range [][]string{{"certs", "init", "--dir", dir}, {"certs", "edge", "edge-1", "--dir", dir}} {
		if code, _, bad := iopctl(t, args...); code != cli.ExitFailure || !strings.Contains(bad, "is there already") || !strings.Contains(bad, "--renew") {
			t.Errorf("%v: code %d: %s", args, code, bad)
		}
	}
	if after := pairIn(t, dir, "edges", "edge-1"); !bytes.Equal(before.Certificate[0], after.Certificate[0]) {
		t.Error("replaced unasked")
	}
	for _, args := range [][]string{{"certs", "init", "--dir", dir, "--keep"}, {"certs", "edge", "edge-1", "--dir", dir, "--keep"}} {
		if out := made(t, args...); !strings.Contains(out, "kept ") {
			t.Errorf("%v: %s", args, out)
		}
	}
	if after := pairIn(t, dir, "edges", "edge-1"); !bytes.Equal(before.Certificate[0], after.Certificate[0]) {
		t.Error("--keep replaces")
	}
	made(t, "certs", "edge", "edge-1", "--dir", dir, "--force")
	if after := pairIn(t, dir, "edges", "edge-1"); after.Leaf.PublicKey.(*ecdsa.PublicKey).Equal(before.Leaf.PublicKey) {
		t.Error("--force keeps the key")
	}
}

func TestCertsRenew(t *testing.T) {
	dir := small(t)
	before := pairIn(t, dir, "edges", "edge-1")
	made(t, "certs", "edge", "edge-1", "--dir", dir, "--renew", "--host", "new.lan", "--days", "700")
	after := pairIn(t, dir, "edges", "edge-1")
	if bytes.Equal(before.Certificate[0], after.Certificate[0]) || !after.Leaf.NotAfter.After(before.Leaf.NotAfter) {
		t.Error("not renewed")
	}
	ca := poolOf(t, filepath.Join(dir, "ca.pem"))
	for _, name := range []string{"gw1.lan", "10.0.0.1", "edge-1", "new.lan"} {
		if _, err := after.Leaf.Verify(x509.VerifyOptions{Roots: ca, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The key is the old one: a daemon that has one of the files from before sees a pair nevertheless.
	if _, err := tls.X509KeyPair(pemOf(before.Certificate[0]), fileText(t, dir, "edges", "edge-1", "key.pem")); err != nil {
		t.Errorf("the key changed: %v", err)
	}
	made(t, "certs", "init", "--dir", dir, "--renew")
	if _, err := after.Leaf.Verify(x509.VerifyOptions{Roots: poolOf(t, filepath.Join(dir, "edges", "edge-1", "ca.pem"))}); err != nil {
		t.Errorf("what a renewed authority signed before: %v", err)
	}
	if !bytes.Equal(fileText(t, dir, "ca.pem"), fileText(t, dir, "edges", "edge-1", "ca.pem")) {
		t.Error("the copy of the authority is the old one")
	}
	if code, _, bad := iopctl(t, "certs", "node", "nobody", "--dir", dir, "--renew"); code != cli.ExitFailure || !strings.Contains(bad, "to renew") {
		t.Errorf("code %d: %s", code, bad)
	}
}

func pemOf(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func fileText(t *testing.T, parts ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCertsShow(t *testing.T) {
	dir := small(t)
	out := made(t, "certs", "show", "--dir", dir)
	for _, want := range []string{"authority", "edge-1, gw1.lan, localhost, 10.0.0.1, fd00::1", "gpu_node.2", "364"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	made(t, "certs", "node", "late", "--dir", dir, "--days", "3")
	made(t, "certs", "node", "mixed", "--dir", dir)
	if err := os.WriteFile(filepath.Join(dir, "nodes", "mixed", "key.pem"), fileText(t, dir, "nodes", "late", "key.pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	made(t, "certs", "node", "foreign", "--dir", dir)
	if err := os.CopyFS(filepath.Join(dir, "nodes", "foreign2"), os.DirFS(filepath.Join(small(t), "nodes", "gpu_node.2"))); err != nil {
		t.Fatal(err)
	}
	code, out, bad := iopctl(t, "certs", "show", "--dir", dir, "-o", "json")
	if code != cli.ExitFailure || !strings.Contains(bad, "3 of 7 certificates need care") {
		t.Errorf("code %d: %s", code, bad)
	}
	var shown struct {
		Certs []struct{ ID, Problem string }
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	problems := map[string]string{}
	for _, c := range shown.Certs {
		problems[c.ID] = c.Problem
	}
	for id, want := range map[string]string{"late": "ends soon", "mixed": "is not the key of", "foreign2": "not signed by", "edge-1": "", "foreign": ""} {
		if got := problems[id]; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

func TestCertsUsage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"certs edge edge-1", cli.ExitFailure, "iopctl certs init"},
		{"certs show", cli.ExitFailure, "iopctl certs init"},
		{"certs edge", cli.ExitUsage, "--help"},
		{"certs edge ../x", cli.ExitUsage, "is not the id"},
		{"certs node x.", cli.ExitUsage, "is not the id"},
		{"certs init --days 0", cli.ExitUsage, "--days"},
		{"certs init --renew --force", cli.ExitUsage, "give one"},
		{"certs init --renew", cli.ExitFailure, "without --renew"},
	} {
		args := append(strings.Fields(c.args), "--dir", dir)
		if code, _, bad := iopctl(t, args...); code != c.code || !strings.Contains(bad, c.want) {
			t.Errorf("%s: code %d, want %d: %s", c.args, code, c.code, bad)
		}
	}
}

// What is printed is what the files want.
func TestCertsTellWhereToPutThem(t *testing.T) {
	dir := small(t)
	out := made(t, "certs", "edge", "edge-2", "--dir", dir)
	for _, want := range []string{"client_ca: \"" + dir, "key: \"" + dir, "server_name: edge-2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
