package enroll

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"iop/configs"
)

// edge answers joins; seen are the hashes that it was shown.
type edge struct {
	*httptest.Server
	answer func(n int, w http.ResponseWriter)
	calls  atomic.Int64
	seen   []string
}

func newEdge(t *testing.T, answer func(n int, w http.ResponseWriter)) *edge {
	e := &edge{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q map[string]string
		if r.URL.Path != "/bootstrap/join" || json.NewDecoder(r.Body).Decode(&q) != nil || q["join_token"] != "secret" {
			t.Errorf("asked %s with %v", r.URL, q)
		}
		e.seen = append(e.seen, q["node_token_sha256"])
		e.answer(int(e.calls.Add(1)), w)
	}))
	t.Cleanup(e.Close)
	return e
}

func welcomed(w http.ResponseWriter, text string) { _, _ = w.Write([]byte(text)) }

const plain = `{"node":"gpu-1","edges":["127.0.0.1:7443"]}`

func options(t *testing.T, e *edge) Options {
	return Options{Edge: e.URL + "/", Token: "secret", Config: filepath.Join(t.TempDir(), "new", "node.yaml"), Wait: 20 * time.Second}
}

func TestJoinWritesACheckedFile(t *testing.T) {
	e := newEdge(t, func(_ int, w http.ResponseWriter) {
		welcomed(w, `{"node":"gpu-1","edges":["edge-1:7443","edge-2:7443"],"tls":true,"ca":"-----BEGIN CERTIFICATE-----\n"}`)
	})
	o := options(t, e)
	r, err := Join(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := configs.LoadNode(r.Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n.Node.ID != "gpu-1" || len(n.Node.Edges) != 2 || !n.Node.TLS.Enabled || n.Node.TLS.CA != r.CA {
		t.Errorf("%+v", n.Node)
	}
	if configs.HashToken(n.Node.Token.Reveal()) != e.seen[0] {
		t.Error("the token in the file is not the one whose hash was shown")
	}
	for _, path := range []string{r.Config, r.CA} {
		info, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.Config), "*"+attemptSuffix)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// The answer is lost: the machine asks again with the same hash, also after it was started anew.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	e := newEdge(t, func(n int, w http.ResponseWriter) {
		if n < 3 {
			panic(http.ErrAbortHandler)
		}
		if n == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		welcomed(w, plain)
	})
	o := options(t, e)
	o.Wait = time.Millisecond
	if _, err := Join(context.Background(), o); err == nil {
		t.Fatal("joined without an answer")
	}
	o.Wait = 20 * time.Second
	r, err := Join(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range e.seen {
		if hash != e.seen[0] {
			t.Errorf("other hashes were shown: %v", e.seen)
		}
	}
	if n, _, err := configs.LoadNode(r.Config, nil); err != nil || configs.HashToken(n.Node.Token.Reveal()) != e.seen[0] {
		t.Errorf("%+v %v", n, err)
	}
}

func TestARefusalIsFinal(t *testing.T) {
	e := newEdge(t, func(_ int, w http.ResponseWriter) {
		w.WriteHeader(http.StatusForbidden)
		welcomed(w, `{"error":{"code":"expired","message":"this join token has expired","cure":"have a new one made"}}`)
	})
	_, err := Join(context.Background(), options(t, e))
	var no *Refused
	if !errors.As(err, &no) || no.Code != "expired" || e.calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, e.calls.Load())
	}
	e.answer = func(_ int, w http.ResponseWriter) { http.Error(w, "not here", http.StatusNotFound) }
	if _, err := Join(context.Background(), options(t, e)); !errors.As(err, &no) || no.Code != "stranger" {
		t.Error(err)
	}
	e.answer = func(_ int, w http.ResponseWriter) {
		w.Header().Set("Location", "http://127.0.0.1:1/bootstrap/join")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	if _, err := Join(context.Background(), options(t, e)); !errors.As(err, &no) {
		t.Errorf("the token followed a redirect: %v", err)
	}
}

// What the operator wrote about backends outlives a new token.
func TestAnotherTokenKeepsTheEnv(t *testing.T) {
	e := newEdge(t, func(_ int, w http.ResponseWriter) { welcomed(w, `{"node":"gpu-1","edges":["127.0.0.1:7443"]}`) })
	o := options(t, e)
	old := "node:\n  id: gpu-1\n  token: old\n  edges: [\"127.0.0.1:1\"]\ncommands:\n- codex\n- /opt/agents/x\nenv: # keys\n  # of the backend\n  MLX_KEY: ${MLX}\n\n# end\nlast: 1"
	if err := os.MkdirAll(filepath.Dir(o.Config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Config, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Env = func(name string) (string, bool) { return "key", name == "MLX" }
	r, err := Join(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(r.Config)
	if !strings.Contains(string(text), "env: # keys\n  # of the backend\n  MLX_KEY: ${MLX}\n") || strings.Contains(string(text), "last:") {
		t.Errorf("%s", text)
	}
	if n, _, err := configs.LoadNode(r.Config, o.Env); err != nil || !slices.Equal(n.Commands, []string{"codex", "/opt/agents/x"}) {
		t.Errorf("the programs that may be started: %v", err)
	}
	if kept, _ := os.ReadFile(r.Old); string(kept) != old {
		t.Errorf("the old file: %s", kept)
	}
	link := filepath.Join(t.TempDir(), "node.yaml")
	if os.Symlink(r.Config, link) == nil {
		o.Config = link
		if _, err := Join(context.Background(), o); err == nil {
			t.Error("a link was written over")
		}
	}
}

// TestTokenIsNotShownInPlainText: beyond this machine a join token travels by TLS, or because somebody says so; the refusal
// comes before a byte was sent or written.
func TestTokenIsNotShownInPlainText(t *testing.T) {
	for _, c := range []struct {
		edge      string
		plaintext bool
		refused   bool
	}{
		{"http://192.0.2.7:8080", false, true},
		{"http://[2001:db8::1]:8080", false, true},
		{"http://0.0.0.0:8080", false, true},
		{"http://192.0.2.7:8080", true, false},
		{"https://192.0.2.7:8080", false, false},
		{"http://127.0.0.1:8080", false, false},
		{"http://[::1]:8080", false, false},
		{"http://localhost:8080", false, false},
	} {
		o := Options{Edge: c.edge, Token: "secret", Plaintext: c.plaintext}
		if err := o.checkPlain(t.Context()); errors.Is(err, ErrPlaintext) != c.refused {
			t.Errorf("%s, plaintext %v: %v", c.edge, c.plaintext, err)
		}
	}
	config := filepath.Join(t.TempDir(), "new", "node.yaml")
	_, err := Join(t.Context(), Options{Edge: "http://192.0.2.7:8080", Token: "secret", Config: config})
	if !errors.Is(err, ErrPlaintext) || !strings.Contains(err.Error(), "--plaintext") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Dir(config)); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}
