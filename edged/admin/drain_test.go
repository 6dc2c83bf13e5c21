package admin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

// drainable lets the world's machine be drained.
func drainable(w *world) func(*admin.Options) {
	return func(o *admin.Options) {
		o.Drain = func(_ context.Context, c *fsm.Drain) (bool, error) {
			if c.Node == "tower" && c.Provider == "" {
				return false, errors.New("no leader")
			}
			return w.do(0, c)[0].Code == fsm.Done, nil
		}
	}
}

func TestDrainOfAProviderAndOfANode(t *testing.T) {
	w := busy(t)
	s := serve(t, w, drainable(w))
	c, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, q := range []struct {
		ask, want adminapi.Drain
	}{
		{adminapi.Drain{Provider: "mac", On: true}, adminapi.Drain{Node: "studio", Provider: "mac", On: true}},
		{adminapi.Drain{Provider: "mac"}, adminapi.Drain{Node: "studio", Provider: "mac"}},
		{adminapi.Drain{Node: "studio", On: true}, adminapi.Drain{Node: "studio", On: true}},
	} {
		got, err := c.Drain(t.Context(), q.ask)
		if err != nil || *got != q.want {
			t.Fatalf("%+v: %+v, %v", q.ask, got, err)
		}
		p, err := c.Provider(t.Context(), "mac")
		if err != nil || p.Draining != q.want.On || p.InFlight != 2 {
			t.Errorf("after %+v: %+v, %v", q.ask, p, err)
		}
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || !nodes.Nodes[0].Draining {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
}

func TestDrainRefuses(t *testing.T) {
	w := busy(t)
	s := serve(t, w, drainable(w))
	c, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, q := range []struct {
		ask  adminapi.Drain
		code string
	}{
		{adminapi.Drain{On: true}, "bad_request"},
		{adminapi.Drain{Node: "studio", Provider: "mac"}, "bad_request"},
		{adminapi.Drain{Node: "nobody"}, "not_found"},
		{adminapi.Drain{Provider: "nobody"}, "not_found"},
		{adminapi.Drain{Node: "tower", On: true}, "failed"},
	} {
		_, err := c.Drain(t.Context(), q.ask)
		var e *adminapi.Error
		if !errors.As(err, &e) || e.Code != q.code {
			t.Errorf("%+v: %v, want %s", q.ask, err, q.code)
		}
	}
	get(t, s, "/drain", http.StatusMethodNotAllowed)
	get(t, s, "/providers/nobody", http.StatusNotFound)
}
