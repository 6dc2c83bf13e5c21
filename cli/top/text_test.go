package top

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestIDIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newScene(true)
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"req_16ea880510557fee0000000000000002", 12, "req_…0000002"},
		{"req-1", 12, "req-1"},
		{"req_16ea88051055", 7, "req_16ea88051055"}, // fit cuts it
		{"模型模型模型模型模型", 10, "模型…模型"},
	} {
		got := s.id(c.text, c.width)
		if got != c.want {
			t.Errorf("id(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestWrapped(t *testing.T) {
	t.Parallel()
	got := strings.Join(wrapped("  p1 on n1 is full: one of its slots has to come back", 24), "\n")
	if want := "  p1 on n1 is full: one\n    of its slots has to\n    come back"; got != want {
		t.Errorf("wrapped:\n%s\nwant:\n%s", got, want)
	}
	for _, l := range wrapped(strings.Repeat("模型", 40)+strings.Repeat(" x", 40), 30) {
		if ansi.StringWidth(l) > 30 {
			t.Errorf("%q is too wide", l)
		}
	}
}

// TestGauge: whatever is in use shows, and a bar is full only if all is.
func TestGauge(t *testing.T) {
	t.Parallel()
	s := newScene(false)
	for _, c := range []struct {
		used, all, width int
		want             string
	}{
		{0, 4, 4, "----"},
		{1, 100, 4, "#---"},
		{2, 4, 4, "##--"},
		{99, 100, 4, "###-"},
		{4, 4, 4, "####"},
		{9, 4, 4, "####"},
		{0, 0, 4, "----"},
		{1, 0, 4, "#---"},
		{1, 2, 0, ""},
		{1, 2, -3, ""},
		{1, 2, 1, "#"},
	} {
		if got := s.gauge(c.used, c.all, c.width); got != c.want {
			t.Errorf("gauge(%d, %d, %d) = %q, want %q", c.used, c.all, c.width, got, c.want)
		}
	}
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	s := newScene(false)
	v := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		values []*float64
		width  int
		want   string
	}{
		{nil, 3, "   "},
		{[]*float64{v(0), v(0)}, 3, " __"},
		{[]*float64{v(7), nil, v(3.5)}, 3, "# -"},
		{[]*float64{v(100), v(1), v(1)}, 2, "##"},
		{nil, 0, ""},
		{[]*float64{v(-1), v(1)}, 2, "_#"},
	} {
		if got := s.sparkline(c.values, c.width); got != c.want {
			t.Errorf("sparkline(%v, %d) = %q, want %q", c.values, c.width, got, c.want)
		}
	}
}
