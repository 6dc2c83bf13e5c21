package edged

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/fsm"
)

const newNode = `{ alias: New, adapters: [ { id: a2, type: demo } ], providers: [ { id: p2, type: demo, adapter: a2, models: [s2], capacity: 1 } ] }`

// TestNewcomers: a node is added, joins, and is still the one it became after a restart with the file of before.
func TestNewcomers(t *testing.T) {
	dir := t.TempDir()
	f := newFile()
	r := start(t, dir, f)
	add := func(q adminapi.NodeRequest, result string, revision uint64) *adminapi.RefreshReport {
		t.Helper()
		report, err := r.addNode(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if report.Result != result || report.Revision != revision {
			t.Fatalf("%+v, want %s %d", report, result, revision)
		}
		return report
	}
	q := adminapi.NodeRequest{ID: "n2", Fragment: []byte(newNode), DryRun: true}
	add(q, "dry_run", 1)
	if _, known := r.view.Node("n2"); known {
		t.Fatal("a dry run added a node")
	}
	q.DryRun = false
	add(q, "applied", 2)
	for name, bad := range map[string]adminapi.NodeRequest{
		"unknown key":    {ID: "n3", Fragment: []byte("capacity: 1")},
		"provider taken": {ID: "n3", Fragment: []byte(newNode)},
		"no name":        {ID: "not a name"},
	} {
		if report := add(bad, "invalid", 2); len(report.Problems) == 0 {
			t.Errorf("%s: no problem is named", name)
		}
	}
	var refusal *adminapi.Error
	if _, err := r.addNode(t.Context(), q); !errors.As(err, &refusal) || refusal.Code != "node_exists" {
		t.Errorf("the same node again: %v", err)
	}
	join := adminapi.JoinRequest{Node: "n2", TokenSHA256: configs.HashToken("join"), TTLMS: 60_000}
	if _, err := r.addJoin(t.Context(), join); err != nil {
		t.Fatal(err)
	}
	for code, bad := range map[string]adminapi.JoinRequest{
		"unknown_node": {Node: "n9", TokenSHA256: join.TokenSHA256, TTLMS: 1},
		"bad_request":  {Node: "n2", TokenSHA256: "join", TTLMS: 1},
		"duplicate":    {Node: "n", TokenSHA256: join.TokenSHA256, TTLMS: 1},
	} {
		if _, err := r.addJoin(t.Context(), bad); !errors.As(err, &refusal) || refusal.Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	body := `{"join_token":"join","node_token_sha256":"` + configs.HashToken("own") + `"}`
	for range 2 {
		if status, text := post(t, r, body); status != 200 || !strings.Contains(text, `"node":"n2"`) || !strings.Contains(text, r.Addrs().Node) {
			t.Fatalf("%d %s", status, text)
		}
	}
	if status, text := post(t, r, `{"join_token":"guess","node_token_sha256":"`+configs.HashToken("own")+`"}`); status != 403 {
		t.Errorf("a guessed token: %d %s", status, text)
	}
	r.stop()
	r = start(t, dir, f)
	if e, known := r.view.Node("n2"); !known || e.TokenSHA256 != configs.HashToken("own") || e.Payload == nil {
		t.Errorf("after a restart: %v %+v", known, e)
	}
	if e, _ := r.view.Node("n"); e.TokenSHA256 != configs.HashToken("t") {
		t.Error("the node of the file has another token")
	}
	if strings.Contains(r.log.String(), configs.HashToken("own")) {
		t.Error("the log tells a hash")
	}
}

func post(t *testing.T, r *running, body string) (int, string) {
	t.Helper()
	res, err := http.Post("http://"+r.Addrs().OpenAI+"/bootstrap/join", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read from only
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestReachable(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	for _, c := range [][3]string{
		{"127.0.0.1:80", "", "127.0.0.1:80"},
		{"[::1]:80", "h", "[::1]:80"},
		{"[::]:80", "h", "h:80"},
		{"0.0.0.0:80", "h", "h:80"},
		{"[::]:80", "", name + ":80"},
		{"gw:80", "h", "gw:80"},
	} {
		if got := reachable(c[0], c[1]); got != c[2] {
			t.Errorf("%s, %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// certificate gives one that parent has signed; nil = by itself.
func certificate(t *testing.T, isCA bool, parent *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: map[bool]string{true: "ca", false: "edge"}[isCA]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: isCA, BasicConstraintsValid: true,
		DNSNames: []string{"edge"}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if parent == nil {
		parent, key = c, own
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &own.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, own, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestPrivateAuthority(t *testing.T) {
	ca, caKey, caPEM := certificate(t, true, nil, nil)
	_, _, leaf := certificate(t, false, ca, caKey)
	_, _, selfSigned := certificate(t, false, nil, nil)
	beside := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(beside, []byte(selfSigned+caPEM), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, other, want string }{
		"with its authority": {leaf + caPEM, "", caPEM}, "alone": {leaf, "", ""}, "signed by itself": {selfSigned, "", selfSigned},
		"with its authority beside it": {leaf, beside, caPEM},
	} {
		path := filepath.Join(t.TempDir(), "chain.pem")
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := privateAuthority(path, "", c.other)
		if err != nil || got != c.want {
			sum := sha256.Sum256([]byte(got))
			t.Errorf("%s: %s %v", name, hex.EncodeToString(sum[:4]), err)
		}
	}
}

// TestNodesAddedAtTheSameTime: changes that have nothing to do with each other are no conflict.
func TestNodesAddedAtTheSameTime(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	const nodes = 8
	var adding sync.WaitGroup
	for i := range nodes {
		adding.Go(func() {
			report, err := r.addNode(t.Context(), adminapi.NodeRequest{ID: fmt.Sprint("new-", i)})
			if err != nil || report.Result != adminapi.RefreshApplied {
				t.Errorf("node %d: %+v, %v", i, report, err)
			}
		})
	}
	adding.Wait()
	for i := range nodes {
		if _, known := r.view.Node(fsm.NodeID(fmt.Sprint("new-", i))); !known {
			t.Errorf("node %d is not there", i)
		}
	}
}
