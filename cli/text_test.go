package cli

import (
	"os"
	"strings"
	"testing"
)

func TestSpan(t *testing.T) {
	for ms, want := range map[int64]string{
		0: "0ms", 999: "999ms", 1000: "1.0s", 59_999: "59.9s", 60_000: "1m00s", 245_000: "4m05s", 3_599_999: "59m59s",
		12_000_000: "3h20m", 187_200_000: "2d4h",
	} {
		if got := span(ms); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "맥 스튜디오": 11, "日本": 4, "e\u0301": 1, "∞": 1, "🚀": 2} {
		if got := width(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain 맥 ∞": "plain 맥 ∞", "\x1b[31mred": `\x1b[31mred`, "a\nb\tc": `a\nb\tc`, "\u009b2J": `\u009b2J`,
		"\u202eabc": `\u202eabc`, "\xff": `\ufffd`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Colours take no room: the columns are where they are without them.
func TestColoursKeepTheColumns(t *testing.T) {
	show := func(color bool) string {
		p := &page{color: color}
		p.table(&table{
			columns: []column{{name: "A"}, {name: "B", right: true}},
			rows:    [][]cell{cells(cell{"full", paintBusy}, 1), cells(cell{"unavailable", paintBad}, 23)},
		})
		return p.text.String()
	}
	painted := show(true)
	if !strings.Contains(painted, "\x1b[33mfull\x1b[0m") {
		t.Errorf("no colour: %q", painted)
	}
	bare := strings.NewReplacer("\x1b[33m", "", "\x1b[31m", "", "\x1b[0m", "").Replace(painted)
	if plain := show(false); bare != plain {
		t.Errorf("with colours\n%s\nwithout\n%s", bare, plain)
	}
}

// A file or a pipe gets no colours, and neither does a terminal that does not want them.
func TestColoursOnlyOnATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	env := map[string]string{}
	g := &globals{env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	if g.colored(file) || g.colored(&strings.Builder{}) {
		t.Error("a file is coloured")
	}
	if !g.colored(terminal) {
		t.Error("a terminal is not")
	}
	env["NO_COLOR"] = "1"
	if g.colored(terminal) {
		t.Error("NO_COLOR is ignored")
	}
	delete(env, "NO_COLOR")
	g.noColor = true
	if g.colored(terminal) {
		t.Error("--no-color is ignored")
	}
}
