package peerlink

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority signs certificates of replicas.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(template, template, a.key).Leaf
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) tls.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// issue makes a certificate; change may spoil it.
func (a *authority) issue(name string, change ...func(*x509.Certificate)) tls.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(template)
	}
	return a.sign(template, a.cert, newKey(a.t))
}

// files is what Options.TLS reads.
func (a *authority) files(cert tls.Certificate) func() (*tls.Config, error) {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return func() (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool}, nil
	}
}

// replica is a running Network with a host that takes notes.
type replica struct {
	*Network
	t    *testing.T
	host *notes
	log  *record
}

func (r *replica) member() Member { return Member{ID: r.o.ID, Address: r.Addr().String(), Voter: true} }

// start runs a replica; o.ID is required.
func start(t *testing.T, o Options) *replica {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{t: t, host: &notes{cluster: "c1", id: o.ID}, log: &record{}}
	o.Listener, o.Logger = l, slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if r.Network, err = New(o); err != nil {
		t.Fatal(err)
	}
	r.Attach(r.host)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", o.ID, err)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", o.ID, r.log)
		}
	})
	return r
}

// notes is a host.
type notes struct {
	id string

	mu      sync.Mutex
	cluster string
	got     []string
	joined  []Member
	changes []Change
	verdict func(batches string) Verdict
	stuck   chan struct{} // Forwarded waits for its end
}

func (h *notes) Cluster() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cluster
}

func (h *notes) Forwarded(batches []byte) Verdict {
	h.mu.Lock()
	stuck := h.stuck
	h.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v := VerdictAccepted
	if h.verdict != nil {
		v = h.verdict(string(batches))
	}
	if v == VerdictAccepted {
		h.got = append(h.got, string(batches))
	}
	return v
}

func (h *notes) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.got...)
}

func (h *notes) ReadIndex(context.Context) (uint64, uint64, error) {
	if h.id == "follower" {
		return 0, 0, ErrNotLeader
	}
	return 41, 7, nil
}

func (h *notes) Standing() Standing {
	return Standing{
		ID: h.id, Cluster: h.Cluster(), Leader: "a", LeaderAddress: "x:1", Role: "leader", Applied: 3, Last: 4, Term: 5, Level: 1, LevelMax: 2,
		Version: "v1", Members: []Member{{ID: "a", Address: "x:1", Voter: true}, {ID: "b", Address: "y:1"}},
	}
}

func (h *notes) Join(_ context.Context, m Member) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.ID == "unwanted" {
		return errors.New("disk full")
	}
	h.joined = append(h.joined, m)
	return nil
}

// record is a log that can be searched.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *record) says(text string) bool { return strings.Contains(r.String(), text) }

// await waits until a fact holds.
func await(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !fact(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func (h *notes) Change(_ context.Context, c Change) error {
	if c.Remove == "nobody" {
		return ErrNotLeader
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
	return nil
}

func (h *notes) Digest(_ context.Context, mark [32]byte) (uint64, [32]byte, error) {
	mark[0]++
	return 7, mark, nil
}
