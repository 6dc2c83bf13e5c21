package service_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"iop/noded/service"
)

var update = flag.Bool("update", false, "rewrite the files in configs/services")

// usual is noded where an administrator would put it.
var usual = service.Service{Program: "/usr/local/bin/noded", Config: "/etc/iop/node.yaml", Env: "/etc/iop/noded.env"}

// services is where the files are for those who don't use `noded service`.
const services = "../../configs/services"

func text(t *testing.T, s service.Service, k service.Kind) string {
	t.Helper()
	got, err := s.Text(k)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTheFilesAreWhatPrintShows(t *testing.T) {
	for name, k := range map[string]service.Kind{"noded.service": service.Systemd, "iop.noded.plist": service.Launchd} {
		path, got := filepath.Join(services, name), text(t, usual, k)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != got {
			t.Errorf("%s is not what noded service print shows (%v); -update rewrites it", path, err)
		}
	}
}

// verify has systemd read units. The programs that they start must be there, so this test's takes their place.
func verify(t *testing.T, name, unit string) {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here")
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", path).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte(path)) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestSystemdUnderstandsTheUnits(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := usual
	s.Program = program
	verify(t, "iop-noded.service", text(t, s, service.Systemd))
	s.Config, s.Env, s.User = "/a path/with $signs/and 'quotes'/node.yaml", "", "somebody"
	got := text(t, s, service.Systemd)
	verify(t, "iop-noded2.service", got)
	if !strings.Contains(got, `--config "/a path/with $$signs/and 'quotes'/node.yaml"`) || strings.Contains(got, "EnvironmentFile") || !strings.Contains(got, "User=somebody\n") {
		t.Error(got)
	}
	edged, err := os.ReadFile(filepath.Join(services, "edged.service"))
	if err != nil {
		t.Fatal(err)
	}
	verify(t, "iop-edged.service", strings.NewReplacer("/usr/local/bin/edged", program, "/usr/local/bin/iopctl", program).Replace(string(edged)))
}

// A unit with a fault must not pass, or the test above tells nothing.
func TestSystemdRefusesABadUnit(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here")
	}
	path := filepath.Join(t.TempDir(), "bad.service")
	if err := os.WriteFile(path, []byte(strings.Replace(text(t, usual, service.Systemd), "NoNewPrivileges", "NoNewPrivilege", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.CommandContext(t.Context(), tool, "verify", "--man=no", path).CombinedOutput()
	if !bytes.Contains(out, []byte("NoNewPrivilege")) {
		t.Errorf("it says nothing of the unknown key:\n%s", out)
	}
}

// A property list is XML of keys and values in pairs.
func TestThePlistIsWhole(t *testing.T) {
	s := service.Service{Program: "/opt/a & b/<noded>", Config: "/Users/x/node file.yaml"}
	d := xml.NewDecoder(strings.NewReader(text(t, s, service.Launchd)))
	var path, texts []string
	keys := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			path = append(path, token.Name.Local)
			if token.Name.Local == "key" {
				keys++
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if at := path[max(0, len(path)-1):]; len(at) == 1 && at[0] == "string" {
				texts = append(texts, string(token))
			}
		}
	}
	want := []string{"iop.noded", "/opt/a & b/<noded>", "--config", "/Users/x/node file.yaml", "Interactive", "/usr/local/var/log/iop-noded.log", "/usr/local/var/log/iop-noded.log"}
	if strings.Join(texts, "|") != strings.Join(want, "|") || keys != 13 || len(path) != 0 {
		t.Errorf("%d keys, texts %q, want %q", keys, texts, want)
	}
}

func TestPathsThatTheFormatsCanNotCarryAreRefused(t *testing.T) {
	for _, c := range []struct {
		s service.Service
		k service.Kind
	}{
		{service.Service{Program: "noded", Config: "/c"}, service.Systemd},
		{service.Service{Program: "/noded", Config: ""}, service.Launchd},
		{service.Service{Program: "/noded", Config: "/c\nExecStartPre=/bin/sh"}, service.Systemd},
		{service.Service{Program: "/noded", Config: `/c" --x`}, service.Systemd},
		{service.Service{Program: "/noded", Config: "/100%"}, service.Systemd},
		{service.Service{Program: "/noded", Config: "/c", Env: "relative"}, service.Systemd},
		{service.Service{Program: "/noded", Config: "/c", User: "a b"}, service.Systemd},
		{service.Service{Program: "noded.exe", Config: `C:\c`}, service.Windows},
		{usual, "upstart"},
	} {
		if got, err := c.s.Text(c.k); err == nil {
			t.Errorf("%+v for %s: %s", c.s, c.k, got)
		}
	}
	s := service.Service{Program: `C:\Program Files\iop\noded.exe`, Config: `C:\ProgramData\iop\node.yaml`}
	if got, want := text(t, s, service.Windows), `binPath= "\"C:\Program Files\iop\noded.exe\" --config \"C:\ProgramData\iop\node.yaml\""`; !strings.Contains(got, want) {
		t.Errorf("%s\nhas no %s", got, want)
	}
}
