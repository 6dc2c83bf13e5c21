package cli

import (
	"os/exec"
	"strings"
	"testing"

	"iop/edged/adminapi"
)

func TestLinesToPaste(t *testing.T) {
	o := &adminapi.JoinOffer{URL: "http://it's:8080", ShSHA256: "aa11", PSSHA256: "bb22"}
	sh, ps := lineSh(o, "iop_token"), linePS(o, "iop_token")
	for _, want := range []string{`'http://it'\''s:8080/bootstrap/install.sh'`, "grep -q aa11", "IOP_JOIN_TOKEN=iop_token sh"} {
		if !strings.Contains(sh, want) {
			t.Errorf("%s lacks %s", sh, want)
		}
	}
	for _, want := range []string{"'http://it''s:8080/bootstrap/install.ps1'", "-ne 'bb22'", "$env:IOP_JOIN_TOKEN = 'iop_token'"} {
		if !strings.Contains(ps, want) {
			t.Errorf("%s lacks %s", ps, want)
		}
	}
	if strings.Contains(sh+ps, "\n") {
		t.Error("a line is more than one")
	}
	if shell, err := exec.LookPath("sh"); err == nil {
		if out, err := exec.Command(shell, "-n", "-c", sh).CombinedOutput(); err != nil {
			t.Errorf("no shell can read %s: %s", sh, out)
		}
	}
}

func TestEntryOfANode(t *testing.T) {
	text := "alias: Mac\nadapters: [{ id: a, type: demo }]\nproviders: [{ id: p, type: demo, adapter: a, models: [m], capacity: 1 }]\n"
	node, err := describedNode([]byte(text), "f", "n1", "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := entryOf(node)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimRight(got, "\n"), "\n") {
		if (i == 0) != strings.HasPrefix(line, "  - ") && (i == 0 || !strings.HasPrefix(line, "    ")) {
			t.Errorf("line %d: %q", i+1, line)
		}
	}
	if !strings.HasPrefix(got, "  - id: n1\n") || strings.Contains(got, "token_hash") {
		t.Errorf("%s", got)
	}
	if _, err := describedNode([]byte("id: other\n"), "f", "n1", ""); err == nil || !strings.Contains(err.Error(), "n1") {
		t.Errorf("another id: %v", err)
	}
	if _, err := describedNode([]byte("capacity: 4\n"), "f", "n1", ""); err == nil {
		t.Error("an unknown key passes")
	}
}

func TestAnAddedNodeIsShownAsLinesToPaste(t *testing.T) {
	const entry = "  - id: n1\n    alias: \"a\x1bb\"\n"
	var p page
	showAdded(&p, &added{Report: &adminapi.RefreshReport{}, Join: &joinLines{JoinOffer: &adminapi.JoinOffer{}}, Entry: entry, Unused: []string{"p1"}}, "n1", "")
	if got := p.text.String(); !strings.Contains(got, "\n  - id: n1\n    alias: ") || !strings.Contains(got, "No model leads to p1 yet") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
