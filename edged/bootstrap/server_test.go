package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// host lets in whoever shows its token, once.
type host struct {
	token [32]byte
	node  [32]byte
	err   error
	calls int
}

func (h *host) Redeem(_ context.Context, token, node [32]byte) (*Welcome, error) {
	h.calls++
	switch {
	case h.err != nil:
		return nil, h.err
	case token != h.token || h.node != [32]byte{} && h.node != node:
		return nil, ErrUnknownToken
	}
	h.node = node
	return &Welcome{Node: "n1", Edges: []string{"e:1"}}, nil
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// serve serves a directory with two builds; log gets what is logged.
func serve(t *testing.T, h Host, change ...func(*Options)) (*Server, *strings.Builder, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"noded-linux-amd64", "noded-windows-arm64.exe"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("build of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := &strings.Builder{}
	o := Options{Host: h, Dir: dir, URL: "http://edge:8080/", Logger: slog.New(slog.NewTextHandler(log, nil))}
	for _, c := range change {
		c(&o)
	}
	return New(o), log, dir
}

func ask(s *Server, method, path, from, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://edge"+path, strings.NewReader(body))
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const local = "127.0.0.1:5000"

func TestBuildsWithTheirChecksums(t *testing.T) {
	s, _, dir := serve(t, &host{})
	text := "build of noded-linux-amd64"
	w := ask(s, "GET", "/bootstrap/noded-linux-amd64", local, "")
	if w.Code != 200 || w.Body.String() != text || w.Header().Get("X-Sha256") != hashOf(text) {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	want := hashOf(text) + "  noded-linux-amd64\n" + hashOf("build of noded-windows-arm64.exe") + "  noded-windows-arm64.exe\n"
	if w := ask(s, "GET", "/bootstrap/SHA256SUMS", local, ""); w.Body.String() != want {
		t.Errorf("sums:\n%s", w.Body)
	}
	changed := "another build, of another size"
	if err := os.WriteFile(filepath.Join(dir, "noded-linux-amd64"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if w := ask(s, "GET", "/bootstrap/noded-linux-amd64", local, ""); w.Header().Get("X-Sha256") != hashOf(changed) {
		t.Error("the checksum of a build that was changed is the old one")
	}
	if w := ask(s, "HEAD", "/bootstrap/noded-linux-amd64", local, ""); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
}

func TestNothingElseIsServed(t *testing.T) {
	s, _, dir := serve(t, &host{})
	outside := filepath.Join(filepath.Dir(dir), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "noded-linux-arm64")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "noded-darwin-amd64"), 0o700); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(dir, "noded-darwin-arm64")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, buildMax+1); err != nil {
		t.Skip(err)
	}
	for path, code := range map[string]int{
		"/bootstrap/": 404, "/bootstrap/../secret": 404, "/bootstrap/..%2fsecret": 404, "/bootstrap/%2e%2e/secret": 404,
		"/bootstrap/SHA256SUMS/": 404, "/bootstrap//etc/passwd": 404, "/bootstrap/noded-linux-amd64/..": 404,
		"/bootstrap/noded-windows-amd64.exe": 404, "/bootstrap/NODED-LINUX-AMD64": 404, "/bootstrap/noded-plan9-amd64": 404,
		"/bootstrap/noded-linux-arm64": 500, "/bootstrap/noded-darwin-amd64": 500, "/bootstrap/noded-darwin-arm64": 500,
	} {
		w := ask(s, "GET", path, local, "")
		if w.Code != code || strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), dir) {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, code)
		}
	}
	for _, path := range []string{"/bootstrap/SHA256SUMS", "/bootstrap/install.sh"} {
		if w := ask(s, "GET", path, local, ""); w.Code != 500 {
			t.Errorf("%s with a build that can't be served: %d", path, w.Code)
		}
	}
	if w := ask(s, "POST", "/bootstrap/noded-linux-amd64", local, ""); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
	none, _, _ := serve(t, &host{}, func(o *Options) { o.Dir = "" })
	if w := ask(none, "GET", "/bootstrap/install.sh", local, ""); w.Code != 404 || !strings.Contains(w.Body.String(), "artifact_dir") {
		t.Errorf("without a directory: %d %s", w.Code, w.Body)
	}
	empty, _, _ := serve(t, &host{}, func(o *Options) { o.Dir = t.TempDir() })
	if w := ask(empty, "GET", "/bootstrap/install.sh", local, ""); w.Code != 404 || !strings.Contains(w.Body.String(), "make artifacts") {
		t.Errorf("with an empty directory: %d %s", w.Code, w.Body)
	}
}

func TestDownloadsAreBounded(t *testing.T) {
	s, _, _ := serve(t, &host{})
	for range downloadsMax {
		s.downloads <- struct{}{}
	}
	if w := ask(s, "GET", "/bootstrap/noded-linux-amd64", local, ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestScriptsCarryAddressAndChecksums(t *testing.T) {
	s, _, _ := serve(t, &host{}, func(o *Options) { o.URL = "http://it's:8080" })
	o := s.Offer()
	for name, want := range map[string]struct{ sum, url string }{
		"install.sh": {o.Sh, `base='http://it'\''s:8080'`}, "install.ps1": {o.PS, `$Edge = 'http://it''s:8080'`},
	} {
		w := ask(s, "GET", "/bootstrap/"+name, local, "")
		text := w.Body.String()
		if hashOf(text) != want.sum {
			t.Errorf("%s is not what operators are told", name)
		}
		if !strings.Contains(text, want.url) || strings.Contains(text, "@URL@") || strings.Contains(text, "@SUMS@") {
			t.Errorf("%s: the address is not in it, or a mark is left", name)
		}
		if !strings.Contains(text, hashOf("build of noded-linux-amd64")+"  noded-linux-amd64\n") {
			t.Errorf("%s lacks a checksum", name)
		}
	}
	if len(o.Builds) != 2 || o.Problem != "" {
		t.Errorf("%+v", o)
	}
}

// There is no PowerShell here: what can be said of a text is that its brackets and quotes close.
func TestPowerShellScriptCloses(t *testing.T) {
	s, _, _ := serve(t, &host{})
	text, err := s.script(scriptPS)
	if err != nil {
		t.Fatal(err)
	}
	var open []rune
	pairs := map[rune]rune{'}': '{', ')': '(', ']': '['}
	for n, line := range strings.Split(text, "\n") {
		if at := strings.Index(line, "#"); at == 0 || strings.TrimSpace(line[:max(at, 0)]) == "" && at > 0 {
			continue
		}
		if strings.HasPrefix(line, "'@") || strings.HasSuffix(line, "@'") {
			continue
		}
		var quote rune
		for _, c := range line {
			switch {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '\'' || c == '"':
				quote = c
			case strings.ContainsRune("{([", c):
				open = append(open, c)
			case pairs[c] != 0:
				if len(open) == 0 || open[len(open)-1] != pairs[c] {
					t.Fatalf("line %d: %q closes nothing", n+1, c)
				}
				open = open[:len(open)-1]
			}
		}
		if quote != 0 {
			t.Errorf("line %d: a quote is left open: %s", n+1, line)
		}
	}
	if len(open) > 0 {
		t.Errorf("left open: %q", string(open))
	}
}

func joinBody(token, node string) string {
	return fmt.Sprintf(`{"join_token":%q,"node_token_sha256":%q}`, token, hashOf(node))
}

func TestJoin(t *testing.T) {
	h := &host{token: sha256.Sum256([]byte("join-token-secret"))}
	s, log, _ := serve(t, h)
	for range 2 { // the answer was lost: the same again
		if w := ask(s, "POST", "/bootstrap/join", local, joinBody("join-token-secret", "mine")); w.Code != 200 || !strings.Contains(w.Body.String(), `"node":"n1"`) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	refused := func(body, from string, status int, code string) {
		t.Helper()
		w := ask(s, "POST", "/bootstrap/join", from, body)
		if w.Code != status || !strings.Contains(w.Body.String(), `"code":"`+code+`"`) || !strings.Contains(w.Body.String(), `"cure":"`) {
			t.Errorf("%s: %d %s, want %d %s", body, w.Code, w.Body, status, code)
		}
	}
	refused(joinBody("join-token-secret", "another"), "127.0.0.2:1", 403, "unknown_token")
	refused(joinBody("wrong", "mine"), "127.0.0.2:1", 403, "unknown_token")
	refused("not json", "127.0.0.2:1", 400, "malformed")
	refused(`{"join_token":"x","node_token_sha256":"00"}`, "127.0.0.2:1", 400, "malformed")
	refused(`{"join_token":"x","node_token_sha256":"`+strings.Repeat("0", 64)+`"}`, "127.0.0.2:1", 400, "malformed")
	refused(joinBody("", "mine"), "127.0.0.2:1", 400, "malformed")
	refused(`{"join_token":"`+strings.Repeat("x", joinBytesMax)+`"}`, "127.0.0.2:1", 400, "malformed")
	refused(joinBody("join-token-secret", "mine"), "192.0.2.1:1", 403, "plaintext")
	h.err = ErrExpired
	refused(joinBody("join-token-secret", "mine"), "127.0.0.3:1", 403, "expired")
	h.err = errors.New("the disk is full of join-token")
	refused(joinBody("join-token-secret", "mine"), "127.0.0.3:1", 503, "unavailable")
	if strings.Contains(log.String(), "join-token-secret") || strings.Contains(log.String(), hashOf("mine")) {
		t.Errorf("the log tells secrets:\n%s", log)
	}
	open, _, _ := serve(t, &host{token: h.token}, func(o *Options) { o.Plaintext = true })
	if w := ask(open, "POST", "/bootstrap/join", "192.0.2.1:1", joinBody("join-token-secret", "mine")); w.Code != 200 {
		t.Errorf("with plaintext allowed: %d %s", w.Code, w.Body)
	}
	if w := ask(s, "GET", "/bootstrap/join", local, ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

func TestGuessingIsBounded(t *testing.T) {
	h := &host{}
	s, _, _ := serve(t, h)
	for range joinBurst {
		ask(s, "POST", "/bootstrap/join", local, joinBody("guess", "x"))
	}
	w := ask(s, "POST", "/bootstrap/join", local, joinBody("guess", "x"))
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || h.calls != joinBurst {
		t.Errorf("%d %s, %d reached the log", w.Code, w.Body, h.calls)
	}
	if w := ask(s, "POST", "/bootstrap/join", "127.0.0.9:1", joinBody("guess", "x")); w.Code != 403 {
		t.Errorf("another address: %d", w.Code)
	}
}

func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	addr := netip.MustParseAddr
	for range joinBurst {
		if _, ok := l.allow(addr("2001:db8::1"), now); !ok {
			t.Fatal("refused within the burst")
		}
	}
	if after, ok := l.allow(addr("2001:db8::2"), now); ok || after <= 0 || after > joinEvery {
		t.Errorf("another address of the same /64: %v %v", after, ok)
	}
	if _, ok := l.allow(addr("2001:db8::1"), now.Add(joinEvery)); !ok {
		t.Error("no try came back")
	}
	for i := range 3 * callersMax {
		l.allow(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(l.callers) > callersMax+1 {
		t.Errorf("%d addresses are remembered", len(l.callers))
	}
	if _, ok := l.allow(addr("10.9.9.9"), now); ok {
		t.Error("beyond the bound, addresses do not share one count")
	}
	if _, ok := l.allow(addr("10.9.9.9"), now.Add(callersForgo)); !ok {
		t.Error("those who have all their tries again are not forgotten")
	}
}
