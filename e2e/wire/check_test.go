package wire

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iop/configs"
	"iop/e2e/backend"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// A check asks and changes nothing: no generation, no command, and the node's own link goes on with its runs.
func TestACheckDisturbsNothing(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		<-release
		return words("ok")(ctx, r, a)
	})
	end := make(chan nodelink.End, 1)
	go func() { end <- w.e.links.Exchange(t.Context(), request(w.c.admit(t, "r1"), "{}"), &answer{}) }()
	await(t, "it runs", func() bool { return w.e.links.Status()[0].Runs == 1 })
	before := len(w.c.commands())
	for range 3 {
		l, err := edgelink.New(edgelink.Options{Address: w.e.address, NodeID: "n1", Token: token, Hands: &hands{}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Check(t.Context())
		if err != nil || c.Refused != nil {
			t.Fatalf("%+v, %v", c, err)
		}
		k := c.Checked
		if k.Edge != edgeID || !k.Connected || k.Revision != 5 || k.ProtocolMin != nodepb.ProtocolMin || len(k.Payload.GetProviders()) != 1 {
			t.Errorf("checked %+v", k)
		}
		if skew := c.Skew(time.Now()); skew > time.Second || skew < -time.Minute {
			t.Errorf("the clock of this machine differs from itself by %s", skew)
		}
	}
	if got := len(w.c.commands()); got != before || w.e.counts.get("up n1") != 1 || len(w.c.lost()) != 0 {
		t.Errorf("%d commands, were %d; links up %d, lost %v", got, before, w.e.counts.get("up n1"), w.c.lost())
	}
	close(release)
	if e := <-end; !e.Complete {
		t.Errorf("the run ended with %+v", e)
	}
	if v := w.c.node("n1"); !v.Connected || v.Generation != 1 {
		t.Errorf("node %+v", v)
	}
}

// TestCheckTellsWhatIsWrong: each failure by its own code, with a cure.
func TestCheckTellsWhatIsWrong(t *testing.T) {
	cert, _ := certificate(t)
	c := newCluster(t, "n1")
	well, gone := newBackend(t, 4), newBackend(t, 4)
	gone.Refuse()
	p := offer("n1", "vllm", well.URL(), 1)
	p.Adapters = append(p.Adapters, &nodepb.AdapterConfig{Id: "b", Type: "openai_compat", BaseUrl: gone.URL()},
		&nodepb.AdapterConfig{Id: "c", Type: "openai_compat", BaseUrl: well.URL(), ApiKeyEnv: "IOP_TEST_NOT_SET"})
	p.Providers = append(p.Providers, &nodepb.ProviderConfig{Id: "refuses", Type: "llamacpp", Adapter: "b"}, &nodepb.ProviderConfig{Id: "keyless", Type: "vllm", Adapter: "c"})
	e := startEdge(t, c, func(o *nodelink.Options) {
		o.Version = "v-edge"
		o.Catalog = catalog{c, map[fsm.NodeID]*nodepb.NodeConfigPayload{"n1": p}}
	})
	secure := startEdge(t, c, func(o *nodelink.Options) { o.TLS = &tls.Config{Certificates: []tls.Certificate{cert}} })
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // closed: nobody listens there
	if err != nil {
		t.Fatal(err)
	}
	_ = deaf.Close()
	for _, test := range []struct{ id, token, edge, code string }{
		{"n1", token, e.address, ""},
		{"n1", "wrong", e.address, "wrong_token"},
		{"nobody", token, e.address, "unknown_node"},
		{"n1", token, deaf.Addr().String(), "unreachable"},
		{"n1", token, secure.address, "no_answer"},
		{"n1", token, "no-such-host.invalid:7443", "dns"},
		{"n1", token, well.Address(), "no_answer"}, // an HTTP server
	} {
		r := newDaemon(t, test.id, test.token, test.edge).Check(t.Context())
		got := r.Edges[0]
		if got.Code != test.code || got.OK != (test.code == "") || (got.Cure == "") != (test.code == "") || r.OK {
			t.Errorf("%s at %s: %+v, want %q", test.id, test.edge, got, test.code)
		}
		if test.code != "" {
			continue
		}
		if got.Version != "v-edge" || got.Edge != edgeID || got.Protocol != nodepb.ProtocolMax || r.Version != "v-node" {
			t.Errorf("edge %+v of %+v", got, r)
		}
		wantProviders(t, r.Providers)
	}
	if c.node("n1").Generation != 0 {
		t.Error("a generation was given")
	}
}

func wantProviders(t *testing.T, list []noded.ProviderCheck) {
	t.Helper()
	for i, want := range []struct{ id, cause, cure string }{{"p-n1", "", ""}, {"refuses", "refused", "start the backend"}, {"keyless", "IOP_TEST_NOT_SET", "correct the adapter"}} {
		got := list[i]
		if got.Provider != want.id || got.OK != (want.cause == "") || !strings.Contains(got.Cause, want.cause) || !strings.Contains(got.Cure, want.cure) {
			t.Errorf("provider %+v, want %+v", got, want)
		}
	}
}

// TestCheckTellsWhatIsWrongWithTLS: a stranger's authority, an edge without TLS, a name that the certificate has not.
func TestCheckTellsWhatIsWrongWithTLS(t *testing.T) {
	cert, _ := certificate(t)
	stranger, _ := certificate(t)
	authority := func(c tls.Certificate) string {
		path := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := newCluster(t, "n1")
	plain := startEdge(t, c, nil)
	secure := startEdge(t, c, func(o *nodelink.Options) { o.TLS = &tls.Config{Certificates: []tls.Certificate{cert}} })
	strict := startEdge(t, c, func(o *nodelink.Options) {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert}
	})
	for _, test := range []struct {
		name, edge, code, cure string
		tls                    configs.NodeTLS
	}{
		{"right", secure.address, "", "", configs.NodeTLS{CA: authority(cert)}},
		{"another authority", secure.address, "tls", "node.tls.ca", configs.NodeTLS{CA: authority(stranger)}},
		{"another name", secure.address, "tls", "node.tls.server_name", configs.NodeTLS{CA: authority(cert), ServerName: "elsewhere"}},
		{"an edge that wants a certificate", strict.address, "tls", "node.tls.cert", configs.NodeTLS{CA: authority(cert)}},
		{"an edge without TLS", plain.address, "tls", "edge", configs.NodeTLS{CA: authority(cert)}},
	} {
		test.tls.Enabled = true
		d, err := noded.New(noded.Options{Config: &configs.Node{Node: configs.NodeSelf{
			ID: "n1", Token: token, Edges: []string{test.edge}, TLS: test.tls,
		}}, Logger: logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		got := d.Check(t.Context()).Edges[0]
		if got.Code != test.code || got.OK != (test.code == "") || !strings.Contains(got.Cure, test.cure) {
			t.Errorf("%s: %+v, want %q", test.name, got, test.code)
		}
	}
}

// What a backend tells of itself is read by its node when somebody looks, and only then.
func TestALookReachesTheBackend(t *testing.T) {
	b, err := backend.New(backend.Options{Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	c := newCluster(t, "n1", "n2")
	drained := make(chan string, 4)
	e := startEdge(t, c, func(o *nodelink.Options) {
		o.Catalog = catalog{c, map[fsm.NodeID]*nodepb.NodeConfigPayload{"n1": offer("n1", "mlx", b.URL(), 1)}}
	})
	start(t, newDaemon(t, "n1", token, e.address).Run)
	startNode(t, e.address, "n2", &hands{}, func(o *edgelink.Options) {
		o.Drained = func(provider string, on bool) {
			drained <- provider
		}
	})
	ready(t, c, "n1", 1)
	ready(t, c, "n2", 1)
	s, err := e.links.Look(t.Context(), "n1", "p-n1")
	if err != nil || s.Provider != "p-n1" || len(s.Sources)+len(s.Error) == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := e.links.Look(t.Context(), "n1", "nobody"); err != nil || !strings.Contains(s.Error, "no provider nobody") {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := e.links.Look(t.Context(), "n2", "p-n2"); err != nil || !strings.Contains(s.Error, "does not look") {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := e.links.Look(t.Context(), "nobody", "x"); err == nil {
		t.Errorf("%+v", s)
	}
	c.apply(0, &fsm.Drain{Node: "n2", Provider: "p-n2", On: true})
	c.apply(0, &fsm.Drain{Node: "n2", On: true})
	if first, second := <-drained, <-drained; first != "p-n2" || second != "" {
		t.Errorf("drained %q, then %q", first, second)
	}
}
