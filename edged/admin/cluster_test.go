package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"iop/edged/admin"
	"iop/edged/adminapi"
)

// replicas is a cluster that takes notes.
type replicas struct {
	asked  []string
	err    error
	broken bool // a backup breaks off
}

func (r *replicas) Show(context.Context) (*adminapi.Cluster, error) {
	n := func(v uint64) *uint64 { return &v }
	ms := func(v int64) *int64 { return &v }
	return &adminapi.Cluster{
		Cluster: "9f3c", Edge: "edge-1", Leader: "edge-1", AppliedIndex: 90, Level: 2,
		Members: []adminapi.ClusterMember{
			{ID: "edge-1", Address: "gw1:7400", Voter: true, Role: "leader", AppliedIndex: n(90), Lag: n(0), Version: "v1.2.3", Level: 2, ContactMS: ms(0), Session: 17},
			{ID: "edge-2", Address: "gw2:7400", Role: "joining", AppliedIndex: n(70), Lag: n(20), Version: "v1.2.4", Level: 3, ContactMS: ms(12), Session: 0},
			{ID: "edge-3", Address: "gw3:7400", Voter: true, ContactMS: ms(65_000), Session: 21, Error: "standing of edge-3 at gw3:7400: connection refused"},
			{ID: "edge-4", Address: "gw4:7400", Error: "standing of edge-4 at gw4:7400: no such host"},
		},
	}, nil
}

func (r *replicas) Add(_ context.Context, m adminapi.MemberRequest) error {
	r.asked = append(r.asked, "add "+m.ID+" "+m.Address)
	return r.err
}

func (r *replicas) Remove(_ context.Context, id string, force bool) error {
	r.asked = append(r.asked, "remove "+id)
	if force {
		r.asked = append(r.asked, "by force")
	}
	return r.err
}

func (r *replicas) Transfer(_ context.Context, to string) error {
	r.asked = append(r.asked, "transfer "+to)
	return r.err
}

func (r *replicas) Verify(context.Context) (*adminapi.Verification, error) {
	return &adminapi.Verification{Index: 91, Same: true, Replicas: []adminapi.VerifiedMember{
		{ID: "edge-1", Digest: strings.Repeat("ab", 32)}, {ID: "edge-2", Digest: strings.Repeat("ab", 32)}, {ID: "edge-3", Error: "no answer in time"},
	}}, r.err
}

func (r *replicas) Backup(to io.Writer) error {
	_, _ = io.WriteString(to, "iopback1…")
	if r.broken {
		return errors.New("the disk is on fire")
	}
	return nil
}

func serveCluster(t *testing.T, r *replicas) *httptest.Server {
	return serve(t, busy(t), func(o *admin.Options) { o.Cluster = r })
}

// TestClusterAnswers holds the answers; the files also feed the tests of iopctl.
func TestClusterAnswers(t *testing.T) {
	s := serveCluster(t, &replicas{})
	golden(t, "cluster.json", get(t, s, "/cluster", 200))
	status, body := post(t, s, "/cluster/verify", "")
	if status != 200 {
		t.Fatal(status, body)
	}
	golden(t, "verification.json", []byte(body))
}

func TestClusterChanges(t *testing.T) {
	r := &replicas{}
	s := serveCluster(t, r)
	remove := func(path string) {
		t.Helper()
		if status, e := ask(t, s.Client(), newRequest(t, http.MethodDelete, s.URL+path)); status != 200 {
			t.Errorf("%s: %d %v", path, status, e)
		}
	}
	for path, body := range map[string]string{"/cluster/members": `{"id":"edge-5","address":"gw5:7400"}`} {
		if status, answer := post(t, s, path, body); status != 200 || !strings.Contains(answer, `"members"`) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	remove("/cluster/members/edge-3")
	remove("/cluster/members/edge-4?force=true")
	for _, body := range []string{`{"to":"edge-2"}`, ""} {
		if status, answer := post(t, s, "/cluster/transfer", body); status != 200 {
			t.Errorf("%d %s", status, answer)
		}
	}
	want := "add edge-5 gw5:7400, remove edge-3, remove edge-4, by force, transfer edge-2, transfer "
	if got := strings.Join(r.asked, ", "); got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestClusterRefusals(t *testing.T) {
	r := &replicas{err: &adminapi.Error{Code: "majority", Message: "no majority", Cure: "c", Status: 409}}
	s := serveCluster(t, r)
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/cluster/members", `{"id":"edge-2"}`, 400, "names no replica"},
		{"/cluster/members", `{"id":"edge-2","address":"nowhere"}`, 400, "missing port"},
		{"/cluster/members", `{"id":"","address":"a:1"}`, 400, "names no replica"},
		{"/cluster/members", `{"name":"x"}`, 400, "unknown field"},
		{"/cluster/members", `{"id":"edge-2","address":"a:1"}`, 409, "majority"},
		{"/cluster/transfer", `[]`, 400, "no transfer"},
		{"/cluster/transfer", `{}`, 409, "majority"},
		{"/cluster", ``, 405, "not allowed"},
		{"/cluster/verify", ``, 409, "majority"},
	} {
		if status, body := post(t, s, c.path, c.body); status != c.status || !strings.Contains(body, c.says) || !strings.Contains(body, `"cure":"`) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
	if status, e := ask(t, s.Client(), newRequest(t, http.MethodDelete, s.URL+"/cluster/members/edge-2?force=maybe")); status != 400 || !strings.Contains(e.Message, "maybe") {
		t.Error(status, e)
	}
}

// TestBackupStreams, and breaks the connection rather than pretend to be whole.
func TestBackupStreams(t *testing.T) {
	r := &replicas{}
	s := serveCluster(t, r)
	client, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{closedPort(t), strings.TrimPrefix(s.URL, "http://")}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var got strings.Builder
	if err := client.Backup(t.Context(), &got); err != nil || got.String() != "iopback1…" {
		t.Errorf("%q %v", got.String(), err)
	}
	r.broken = true
	if err := client.Backup(t.Context(), io.Discard); err == nil {
		t.Error("a broken backup came without an error")
	}
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l := httptest.NewServer(nil)
	defer l.Close()
	return strings.TrimPrefix(l.URL, "http://")
}
