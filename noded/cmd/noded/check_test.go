package main

import (
	"strings"
	"testing"

	"iop/noded"
)

func TestCheckShowsWhichProgramsMayBeStarted(t *testing.T) {
	for want, list := range map[string][]string{"commands: any that": nil, "commands: none\n": {}, "commands: codex, /opt/x\n": {"codex", "/opt/x"}} {
		var b strings.Builder
		if err := showCheck(&b, &noded.CheckReport{Commands: list}, "table"); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v: %v\n%s\nwant %q", list, err, b.String(), want)
		}
	}
	var b strings.Builder
	if err := showCheck(&b, &noded.CheckReport{Commands: []string{}}, "json"); err != nil || !strings.Contains(b.String(), `"commands": []`) {
		t.Errorf("%v %s", err, b.String())
	}
}
