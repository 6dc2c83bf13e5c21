//go:build !windows

package top

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/charmbracelet/x/term"
)

// modes are those of the line discipline: raw or cooked, echo, signals.
func modes(t *testing.T, tty *os.File) string {
	t.Helper()
	s, err := term.GetState(tty.Fd())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v", *s)
}

// unset tells of each private mode that was set on the terminal and not reset after it (25 is the cursor, which is shown at
// first, and hidden).
func unset(t *testing.T, written string) {
	t.Helper()
	last := map[string]string{}
	for _, m := range regexp.MustCompile(`\x1b\[\?(\d+)([hl])`).FindAllStringSubmatch(written, -1) {
		last[m[1]] = m[2]
	}
	if len(last) == 0 {
		t.Error("no mode was ever set: this test sees nothing")
	}
	for mode, state := range last {
		if (state == "h") != (mode == "25") {
			t.Errorf("mode %s is left as %s", mode, state)
		}
	}
}
