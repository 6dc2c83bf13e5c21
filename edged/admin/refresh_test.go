package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"iop/configs"
	"iop/edged/admin"
	"iop/edged/adminapi"
)

// refresher is a listener whose refreshes are told to do, and one that tells what it was asked.
func refresher(t *testing.T, result string, err error) (*httptest.Server, *adminapi.RefreshRequest) {
	t.Helper()
	var asked adminapi.RefreshRequest
	s := serve(t, busy(t), func(o *admin.Options) {
		o.Refresh = func(_ context.Context, q adminapi.RefreshRequest) (*adminapi.RefreshReport, error) {
			asked = q
			if err != nil {
				return nil, err
			}
			return &adminapi.RefreshReport{Result: result, Revision: 7}, nil
		}
		o.History = func(context.Context) ([]adminapi.ConfigRevision, bool, error) {
			return []adminapi.ConfigRevision{{Revision: 2, Index: 9, Time: time.Unix(1, 0).UTC(), Edge: "e", Source: "refresh"}}, true, nil
		}
	})
	return s, &asked
}

func post(t *testing.T, s *httptest.Server, path, body string) (int, string) {
	t.Helper()
	res, err := s.Client().Post(s.URL+path, "application/yaml", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestRefreshStatus(t *testing.T) {
	for result, status := range map[string]int{
		"no_change": 200, "dry_run": 200, "applied": 200, "restart_required": 409, "conflict": 409, "invalid": 422,
	} {
		s, _ := refresher(t, result, nil)
		got, body := post(t, s, "/refresh", "")
		if got != status || !strings.Contains(body, `"result":"`+result+`"`) {
			t.Errorf("%s: %d %s", result, got, body)
		}
	}
}

func TestRefreshPassesOnWhatIsAsked(t *testing.T) {
	s, asked := refresher(t, "applied", nil)
	if status, body := post(t, s, "/refresh?dry_run=true&live_only=true&expected_revision=5", "edge: {}\n"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if !asked.DryRun || !asked.LiveOnly || asked.Expected == nil || *asked.Expected != 5 || string(asked.File) != "edge: {}\n" {
		t.Errorf("%+v", asked)
	}
	if status, _ := post(t, s, "/refresh", ""); status != 200 || asked.DryRun || asked.LiveOnly || asked.Expected != nil || len(asked.File) > 0 {
		t.Errorf("%d %+v", status, asked)
	}
}

func TestRefreshRefusals(t *testing.T) {
	noLeader := &adminapi.Error{Code: "no_leader", Message: "m", Cure: "c", Status: http.StatusServiceUnavailable}
	for _, c := range []struct {
		path, body string
		err        error
		status     int
		says       string
	}{
		{"/refresh?dry_run=maybe", "", nil, 400, "maybe"},
		{"/refresh?dryrun=true", "", nil, 400, "dryrun"},
		{"/refresh?expected_revision=-1", "", nil, 400, "expected_revision"},
		{"/refresh", strings.Repeat("#", configs.FileMax+1), nil, 413, "MiB"},
		{"/refresh", "", noLeader, 503, "no_leader"},
		{"/refresh", "", errors.New("disk on fire"), 500, "disk on fire"},
	} {
		s, _ := refresher(t, "applied", c.err)
		if status, body := post(t, s, c.path, c.body); status != c.status || !strings.Contains(body, c.says) || !strings.Contains(body, `"cure":"`) {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	s, asked := refresher(t, "applied", nil)
	if status, e := ask(t, s.Client(), newRequest(t, "GET", s.URL+"/refresh")); status != 405 || !strings.Contains(e.Cure, "POST") {
		t.Errorf("%d %+v", status, e)
	}
	if status, _ := ask(t, s.Client(), newRequest(t, "POST", s.URL+"/refresh", "Origin", "http://evil.example")); status != 403 || asked.File != nil {
		t.Errorf("a page of another origin: %d", status)
	}
}

func TestConfig(t *testing.T) {
	s, _ := refresher(t, "", nil)
	var c adminapi.Config
	if err := json.Unmarshal(get(t, s, "/config", 200), &c); err != nil || c.Revision != 1 {
		t.Fatalf("%+v %v", c, err)
	}
	if back, err := configs.ParseCluster(c.Document); err != nil || len(back.Nodes) == 0 {
		t.Errorf("%v", err)
	}
	if body := get(t, s, "/config/history", 200); strings.TrimSpace(string(body)) != `{"revisions":[{"revision":2,"index":9,"time":"1970-01-01T00:00:01Z","edge":"e","source":"refresh","changes":null}]}` {
		t.Errorf("%s", body)
	}
	empty := serve(t, newWorld(t), nil)
	if body := get(t, empty, "/config", 200); strings.TrimSpace(string(body)) != `{"revision":0,"document":null}` {
		t.Errorf("%s", body)
	}
	if body := get(t, empty, "/config/history", 200); strings.TrimSpace(string(body)) != `{"revisions":[]}` {
		t.Errorf("%s", body)
	}
}
