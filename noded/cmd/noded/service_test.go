package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestServicePrintsForEachSystem(t *testing.T) {
	for kind, want := range map[string]string{"systemd": "ExecStart=/opt/noded --config /etc/node.yaml", "launchd": "<string>/etc/node.yaml</string>"} {
		var out, errs bytes.Buffer
		code := run([]string{"service", "print", "--kind", kind, "--program", "/opt/noded", "--config", "/etc/node.yaml"}, &out, &errs, env())
		if code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", kind, code, out.String(), errs.String())
		}
	}
}

func TestServiceRefusesWhatWouldNotRun(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"service", "Usage: noded service"},
		{"service --config x", "Usage: noded service"},
		{"service frob", `"frob" is no verb`},
		{"service print", "no configuration"},
		{"service print --kind upstart --config /x", "upstart"},
		{"service print x --config /x", "unexpected argument"},
		{"service install --config /does/not/exist", "/does/not/exist"},
		{"service install --config " + file(t, "node:\n  id: n1\n"), "node.edges"},
		{"check", "no configuration"},
		{"check --config /does/not/exist", "/does/not/exist"},
		{"check --config x y", "unexpected argument"},
		{"check -o xml --config x", "xml"},
		{"check --frob", "frob"},
	} {
		var out, errs bytes.Buffer
		if code := run(strings.Fields(c.args), &out, &errs, env()); code != exitUsage || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d, %s", c.args, code, errs.String())
		}
	}
}
