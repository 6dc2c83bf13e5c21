package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edgeFile writes a file with the given listeners and returns its path.
func edgeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "edge.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	bad := edgeFile(t, "edge: {id: e, data_dir: d, port: 1}\n")
	busy := edgeFile(t, `edge: {id: e, data_dir: `+t.TempDir()+`/d, listen: {openai: "`+taken.Addr().String()+`", node: "127.0.0.1:0", admin: "127.0.0.1:0"}}`+"\n")
	none := map[string]string{}
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		code int
		says string
	}{
		{"version", []string{"--version"}, none, 0, "edged "},
		{"help", []string{"--help"}, none, 0, "-log-format"},
		{"no file", nil, none, 2, "IOP_CONFIG"},
		{"unknown flag", []string{"--port", "1"}, none, 2, "-port"},
		{"a file without its flag", []string{bad}, none, 2, "given as --config " + bad},
		{"help of health", []string{"--help"}, none, 0, "edged health"},
		{"a node's file", []string{"--config", edgeFile(t, "node: {id: n}\n")}, none, 2, "this is a node's file; start noded with it"},
		{"argument", []string{"--config", bad, "more"}, none, 2, `"more"`},
		{"log format", []string{"--config", bad, "--log-format", "xml"}, none, 2, "xml"},
		{"log level", []string{"--config", bad, "--log-level", "loud"}, none, 2, "loud"},
		{"missing file", []string{"--config", bad + ".not"}, none, 2, bad + ".not"},
		{"bad file", []string{"--config", bad}, none, 2, bad + ":1: edge.port: unknown key"},
		{"bad file by environment", nil, map[string]string{"IOP_CONFIG": bad}, 2, bad + ":1: edge.port: unknown key"},
		{"port taken", []string{"--config", busy}, none, 1, taken.Addr().String()},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(c.args, &out, &errs, func(k string) (string, bool) { v, ok := c.env[k]; return v, ok })
			if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("code %d, want %d with %q:\n%s", code, c.code, c.says, said)
			}
			if c.code != 0 && out.Len() > 0 {
				t.Errorf("on stdout: %s", out.String())
			}
		})
	}
}
