package cli_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/cli"
)

// authority writes the certificate of a server that speaks TLS as the authority that it is of itself.
func authority(t *testing.T, s *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// quietTLS is an edge that speaks TLS, and says nothing of those who don't.
func quietTLS(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"leases":[]}`)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestEveryWayToMissAnEdgeHasItsCure: nobody there, the wrong kind of listener, TLS on one side only, the wrong authority, the
// wrong name, somebody who does not answer.
func TestEveryWayToMissAnEdgeHasItsCure(t *testing.T) {
	t.Parallel()
	secure, other := quietTLS(t), filepath.Join(t.TempDir(), "pki")
	made(t, "certs", "init", "--dir", other)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") }))
	t.Cleanup(plain.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	tlsAddress := strings.TrimPrefix(secure.URL, "https://")
	_, tlsPort, _ := net.SplitHostPort(tlsAddress)
	for _, c := range []struct {
		name, args string
		code       int
		says, cure string
	}{
		{"nobody", "--edge " + closedPort(t), 1, "connection refused", "start edged, or name the admin address"},
		{"no such host", "--edge nowhere.invalid:1", 1, "nowhere.invalid", "check the name in --edge"},
		{"plain to TLS", "--edge " + tlsAddress, 1, "speaks TLS, and was asked in plain text", "--ca or IOP_CA"},
		{"TLS to plain", "--edge https://" + strings.TrimPrefix(plain.URL, "http://"), 1, "HTTP response to HTTPS client", "leave --ca and IOP_CA out"},
		{"unknown authority", "--edge " + secure.URL, 1, "certificate", "another authority"},
		{"wrong authority", "--edge " + tlsAddress + " --ca " + filepath.Join(other, "ca.pem"), 1, "certificate", "another authority"},
		{"wrong name", "--edge localhost:" + tlsPort + " --ca " + authority(t, secure), 1, "certificate", "another name"},
		{"another listener", "--edge " + plain.URL, 1, "not as the admin listener", "admin=HOST:PORT"},
		{"silence", "--edge " + silent.Addr().String() + " --timeout 200ms", 1, "no answer in time", "--timeout 30s"},
		{"two of them", "--edge " + closedPort(t) + " --edge " + secure.URL, 1, "connection refused; ", "another authority"},
		{"no address", "--edge :x", 2, "is not HOST:PORT", "--help"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, append([]string{"leases", "list"}, strings.Fields(c.args)...)...)
			_, cure, _ := strings.Cut(errs, "\n  cure: ")
			if code != c.code || out != "" || !strings.Contains(errs, c.says) || !strings.Contains(cure, c.cure) {
				t.Errorf("code %d, want %d with %q and the cure %q: %s%s", code, c.code, c.says, c.cure, out, errs)
			}
		})
	}
}

// TestWhatWasMeant: a mistyped id, option or command is answered with the nearest there is.
func TestWhatWasMeant(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/providers": `{"providers":[{"id":"gpu-1","node":"alpha"},{"id":"gpu-2","node":"beta"}]}`, "/nodes": `{"nodes":[{"id":"alpha"},{"id":"beta"}]}`,
		"/models": `{"models":[{"id":"ornith:35b"}]}`, "/queue": `{"pending":1,"waiters":[{"request":"req-5b1f"}]}`,
		"/leases": `{"leases":[{"id":17,"request":"req-77aa"}]}`, "/cluster": `{"members":[{"id":"edge-1"},{"id":"edge-2"}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if text, ok := files[r.URL.Path]; ok && r.Method == http.MethodGet {
			_, _ = io.WriteString(w, text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":"not_found","message":"there is none of that name","cure":"list them"}}`)
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		args, meant string
		code        int
	}{
		{"providers show gpu1", "'gpu-1'", 1},
		{"providers drain gpu_2", "'gpu-2'", 1},
		{"providers undrain gpu_2", "'gpu-2'", 1},
		{"nodes show alhpa", "'alpha'", 1},
		{"nodes drain alpa", "'alpha'", 1},
		{"nodes token betta", "'beta'", 1},
		{"models show ornith:34b", "'ornith:35b'", 1},
		{"queue cancel req-5b1g", "'req-5b1f'", 1},
		{"requests explain req-77a", "'req-77aa'", 1},
		{"leases inspect req-77ab", "'req-77aa'", 1},
		{"cluster remove egde-2", "'edge-2'", 1},
		{"cluster transfer edge-", "'edge-1'", 1},
		{"leases list --data-dri x", "--data-dir", 2},
		{"status --tiemout 1s", "--timeout", 2},
		{"provider list", "'iopctl providers'", 2},
		{"queue lst", "'iopctl queue list'", 2},
		{"cluster ad", "'iopctl cluster add'", 2},
	} {
		code, _, errs := run(t, append(strings.Fields(c.args), "--edge", s.URL)...)
		_, cure, _ := strings.Cut(errs, "\n  cure: ")
		if code != c.code || !strings.Contains(cure, "did you mean "+c.meant) {
			t.Errorf("iopctl %s: code %d, want %d, and %s is meant: %s", c.args, code, c.code, c.meant, errs)
		}
	}
	// What is like nothing that there is gets no guess.
	if _, _, errs := run(t, "providers", "show", "something-else", "--edge", s.URL); strings.Contains(errs, "did you mean") {
		t.Errorf("%s", errs)
	}
	// Too few or too many arguments: how it is written.
	if code, _, errs := run(t, "leases", "inspect"); code != cli.ExitUsage || !strings.Contains(errs, "write it as 'iopctl leases inspect LEASE|REQUEST'") {
		t.Errorf("code %d: %s", code, errs)
	}
}

// TestExitCodes: each documented code is that of a command that comes to it, and no other is documented.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	busy, _ := drainEdge(t, 3)
	restart, _ := answering(t, 409, report("restart_required"))
	conflict, _ := answering(t, 409, report("conflict"))
	split := serve(t, func(string) (int, string) {
		return 503, `{"error":{"code":"no_leader","message":"there is no leader","cure":"try again"}}`
	})
	got := map[int]bool{}
	for _, c := range []struct {
		args string
		code int
	}{
		{"version", 0},
		{"leases list --edge " + closedPort(t), cli.ExitFailure},
		{"leases list --edge " + split, cli.ExitFailure}, // what only reads needs no leader; this is just an answer
		{"no-such-command", cli.ExitUsage},
		{"config validate no-such-file", cli.ExitUsage},
		{"refresh --edge " + restart, cli.ExitRestart},
		{"refresh --edge " + conflict, cli.ExitConflict},
		{"nodes add n9 --edge " + conflict, cli.ExitConflict},
		{"refresh --edge " + split, cli.ExitNoLeader},
		{"nodes add n9 --edge " + split, cli.ExitNoLeader},
		{"nodes drain n1 --edge " + split, cli.ExitNoLeader},
		{"providers undrain p1 --edge " + split, cli.ExitNoLeader},
		{"queue cancel r-1 --edge " + split, cli.ExitNoLeader},
		{"cluster add e2 h:1 --edge " + split, cli.ExitNoLeader},
		{"cluster remove e2 --edge " + split, cli.ExitNoLeader},
		{"cluster replace e2 e3 h:1 --edge " + split, cli.ExitNoLeader},
		{"cluster transfer --edge " + split, cli.ExitNoLeader},
		{"cluster verify --edge " + split, cli.ExitNoLeader},
		{"nodes token n1 --edge " + split, cli.ExitNoLeader},
		{"providers drain p1 --wait --wait-timeout 1ms --edge " + busy, cli.ExitStillRunning},
	} {
		code, _, errs := run(t, strings.Fields(c.args)...)
		if code != c.code || code != 0 && !strings.HasPrefix(errs, "iopctl: ") {
			t.Errorf("iopctl %s: code %d, want %d: %s", c.args, code, c.code, errs)
		}
		got[c.code] = true
	}
	for _, code := range cli.ExitCodes() {
		if !got[code] {
			t.Errorf("code %d is documented, and no command here comes to it", code)
		}
		delete(got, code)
	}
	if len(got) > 0 {
		t.Errorf("codes %v are not documented", got)
	}
}
