package noded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"iop/configs"
	"iop/noded/edgelink"
)

func nodeConfig(edges ...string) *configs.Node {
	c := configs.NewNode()
	c.Node.ID, c.Node.Token, c.Node.Edges = "n1", "geheim", edges
	return c
}

func TestADaemonStopsThoughItsEdgesNeverAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test has ended
	var log logBuffer
	d, err := New(Options{Config: nodeConfig(silent.Addr().String(), address(t)), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test has ended
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("an orderly stop returned %v", err)
	}
	if strings.Contains(log.String(), "geheim") {
		t.Errorf("the token is in the log: %s", &log)
	}
}

func TestTheReadyLineComesOnceWithTheFirstLink(t *testing.T) {
	var out bytes.Buffer
	d, err := New(Options{Config: nodeConfig("127.0.0.1:1", "127.0.0.1:2"), Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []edgelink.Phase{edgelink.PhaseDialing, edgelink.PhaseRefused, edgelink.PhasePending} {
		d.observe(edgelink.State{Phase: p})
	}
	if out.Len() > 0 {
		t.Fatalf("ready too early: %q", out.String())
	}
	for range 3 {
		d.observe(edgelink.State{Phase: edgelink.PhaseReady})
		d.observe(edgelink.State{Phase: edgelink.PhaseLost})
	}
	<-d.Ready()
	if want := "noded ready node=n1 edges=2\n"; out.String() != want {
		t.Errorf("stdout has %q, want %q", out.String(), want)
	}
}

func TestTLSFilesAreReadBeforeTheStart(t *testing.T) {
	c := nodeConfig("edge.example:7443")
	c.Node.TLS = configs.NodeTLS{Enabled: true, CA: "/does/not/exist", Cert: "/nor/this", Key: "/nor/that"}
	var wrong *configs.Problems
	if _, err := New(Options{Config: c}); !errors.As(err, &wrong) || len(wrong.List) != 2 {
		t.Errorf("the error is %v, want both problems", err)
	}
	security, err := loadTLS(configs.NodeTLS{Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	if name := tlsFor(security, "edge.example:7443").ServerName; name != "edge.example" {
		t.Errorf("the edge's certificate must have the name %q", name)
	}
	security.ServerName = "given"
	if name := tlsFor(security, "edge.example:7443").ServerName; name != "given" {
		t.Errorf("the edge's certificate must have the name %q", name)
	}
}
