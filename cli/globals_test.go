package cli_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/cli"
)

// An edge beyond loopback speaks TLS with a certificate that no public authority signed.
func TestEdgesAreAskedOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"leases":[]}`)
	}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(s.URL, "https://")
	made(t, "leases", "list", "--edge", address, "--ca", ca)
	made(t, "leases", "list", "--edge", s.URL, "--ca", ca)
	if code, _, bad := iopctl(t, "leases", "list", "--edge", s.URL); code != cli.ExitFailure || !strings.Contains(bad, "certificate") {
		t.Errorf("without the authority: code %d: %s", code, bad)
	}
	if code, _, _ := iopctl(t, "leases", "list", "--edge", address, "--ca", ca+"x"); code != cli.ExitUsage {
		t.Errorf("with a file that is not there: code %d", code)
	}
}
