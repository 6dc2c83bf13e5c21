package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iop/configs"
	"iop/edged"
)

// asked runs edged health on a file with the given text.
func asked(t *testing.T, text string, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	code = run(append([]string{"health", "--config", edgeFile(t, text)}, args...), &out, &out, func(string) (string, bool) { return "", false })
	return code, out.String()
}

func listening(openai string) string {
	return `edge: {id: e, data_dir: d, listen: {openai: "` + openai + `", node: "127.0.0.1:0", admin: "127.0.0.1:0"}}` + "\n"
}

func TestHealthAsksARunningEdge(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	if code, said := asked(t, listening(address)); code != exitFailed || !strings.Contains(said, "refused") {
		t.Errorf("nothing runs: code %d, %s", code, said)
	}
	config := configs.NewEdge()
	config.Edge.ID, config.Edge.DataDir = "e", t.TempDir()
	config.Edge.Listen = configs.Listen{OpenAI: address, Node: "127.0.0.1:0", Admin: "127.0.0.1:0"}
	said := make(chan struct{})
	d, err := edged.New(edged.Options{Config: config, Stdout: writer(func(b []byte) { close(said) })})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-said:
	case err := <-ended:
		t.Fatal("the edge ended: ", err)
	}
	for _, c := range []struct{ at, args, says string }{
		{address, "", "ok"},
		{address, "--ready", "ready"},
		{":" + port, "", "ok"},
		{"0.0.0.0:" + port, "--ready", "ready"},
	} {
		if code, said := asked(t, listening(c.at), strings.Fields(c.args)...); code != exitOK || !strings.Contains(said, c.says) {
			t.Errorf("%+v: code %d, %s", c, code, said)
		}
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestHealthOfAnEdgeThatIsNotReady(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			http.Error(w, "no leader", http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	address := s.Listener.Addr().String()
	if code, said := asked(t, listening(address)); code != exitOK {
		t.Errorf("alive: code %d, %s", code, said)
	}
	if code, said := asked(t, listening(address), "--ready"); code != exitFailed || !strings.Contains(said, "503: no leader") {
		t.Errorf("ready: code %d, %s", code, said)
	}
}

func TestHealthThatHangs(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	if code, said := asked(t, listening(s.Listener.Addr().String()), "--timeout", (50 * time.Millisecond).String()); code != exitFailed {
		t.Errorf("code %d, %s", code, said)
	}
}

func TestHealthOverTLSKnowsTheEdgeByItsCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	dir := t.TempDir()
	cert, wrong := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "wrong.pem")
	der := s.Certificate().Raw
	for file, b := range map[string][]byte{cert: der, wrong: append([]byte{1}, der[1:]...)} {
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, code := range map[string]int{cert: exitOK, wrong: exitFailed, cert + ".not": exitFailed} {
		e := configs.NewEdge().Edge
		e.Listen.OpenAI, e.TLS.OpenAI, e.TLS.Cert = s.Listener.Addr().String(), true, file
		if _, err := ask(t.Context(), &e, "/healthz"); (err == nil) != (code == exitOK) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestHealthUsage(t *testing.T) {
	for _, c := range []struct {
		text string
		args []string
		code int
		says string
	}{
		{listening("127.0.0.1:1"), []string{"--help"}, exitOK, "Usage: edged health"},
		{listening("127.0.0.1:1"), []string{"more"}, exitUsage, "Usage: edged health"},
		{listening("127.0.0.1:1"), []string{"--timeout", "0s"}, exitUsage, "Usage: edged health"},
		{"edge: {port: 1}\n", nil, exitUsage, "unknown key"},
		{listening("127.0.0.1:0"), nil, exitFailed, "port 0"},
	} {
		if code, said := asked(t, c.text, c.args...); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%v: code %d, %s", c.args, code, said)
		}
	}
}
