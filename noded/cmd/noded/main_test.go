package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/configs"
)

func env(pairs ...string) configs.Env {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBadUsageAndBadConfigurationExitWith2AndSayWhy(t *testing.T) {
	faulty := file(t, "node:\n  id: n1\n  tokn: x\n  edges: [\"nowhere\"]\nother: 1\n")
	noCA := file(t, "node:\n  id: n1\n  token: t\n  edges: [\"127.0.0.1:1\"]\n  tls: { enabled: true, ca: /does/not/exist, cert: /nor/this, key: /nor/that }\n")
	for name, c := range map[string]struct {
		args []string
		env  configs.Env
		says []string
	}{
		"no configuration": {nil, env(), []string{"--config", "IOP_CONFIG"}},
		"unknown flag":     {[]string{"--frob"}, env(), []string{"frob"}},
		"argument":         {[]string{"--config", faulty, "x"}, env(), []string{`"x"`}},
		"a bare file":      {[]string{faulty}, env(), []string{"given as --config " + faulty}},
		"an edge's file":   {[]string{"--config", file(t, "edge: {id: e}\nnodes: []\n")}, env(), []string{"this is an edge's file; start edged with it"}},
		"log format":       {[]string{"--log-format", "xml", "--config", faulty}, env(), []string{"xml"}},
		"log level":        {[]string{"--log-level", "loud"}, env(), []string{"loud"}},
		"no such file":     {[]string{"--config", "/does/not/exist"}, env(), []string{"/does/not/exist"}},
		"by environment":   {nil, env("IOP_CONFIG", "/does/not/exist"), []string{"/does/not/exist"}},
		"all its faults":   {[]string{"--config", faulty}, env(), []string{"tokn", "edges[0]", "other"}},
		"TLS files":        {[]string{"--config", noCA}, env(), []string{"node.tls.ca", "node.tls.cert"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(c.args, &out, &errs, c.env); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			for _, s := range c.says {
				if !strings.Contains(errs.String(), s) {
					t.Errorf("stderr does not name %q:\n%s", s, errs.String())
				}
			}
			if out.Len() > 0 {
				t.Errorf("stdout has %q", out.String())
			}
		})
	}
}

func TestVersionAndHelpExitWith0(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--version"}, &out, &errs, env()); code != exitOK || !strings.HasPrefix(out.String(), "noded ") {
		t.Errorf("exit code %d, %q", code, out.String())
	}
	if code := run([]string{"--help"}, &out, &errs, env()); code != exitOK || !strings.Contains(errs.String(), "-log-format") || !strings.Contains(errs.String(), "noded join") {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
}

func TestLogsAreInTheChosenForm(t *testing.T) {
	var out, errs bytes.Buffer
	f, err := parseFlags([]string{"--config", "x", "--log-format", "json", "--log-level", "warn"}, &errs, env())
	if err != nil {
		t.Fatal(err)
	}
	h := f.handler(&out)
	if h.Enabled(t.Context(), f.level-1) || !h.Enabled(t.Context(), f.level) {
		t.Error("the level is not kept to")
	}
	if f, _ = parseFlags([]string{"--config", "x"}, &errs, env("IOP_CONFIG", "y")); f.config != "x" {
		t.Errorf("the flag does not win over the environment: %q", f.config)
	}
	if b, err := json.Marshal(f.level); err != nil || string(b) != `"INFO"` {
		t.Errorf("the level is %s, %v", b, err)
	}
}
