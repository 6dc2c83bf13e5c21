package top

import "charm.land/lipgloss/v2"

// scene is what drawing depends on besides the data.
type scene struct {
	unicode bool
	glyphs  *glyphs
	nowMS   int64 // by the edge's clock, so that a clock that is wrong here makes no wrong ages
}

// glyphs are what is drawn with.
type glyphs struct {
	full, empty string // of a bar
	spark       []rune // low to high
	more        string // something was cut
	up, down    string // the order of a column
	infinite    string
	dot         string // between facts
}

func newScene(utf8 bool) *scene {
	s := &scene{unicode: utf8, glyphs: &glyphs{
		full: "#", empty: "-", spark: []rune("_.:-=+*#"), more: "~", up: "^", down: "v", infinite: "inf", dot: "|",
	}}
	if utf8 {
		s.glyphs = &glyphs{full: "█", empty: "░", spark: []rune("▁▂▃▄▅▆▇█"), more: "…", up: "▲", down: "▼", infinite: "∞", dot: "·"}
	}
	return s
}

// paint is a way to show something, by its meaning. A state is always told in words too.
type paint int

const (
	plain paint = iota
	good
	busy
	bad
	faint
	strong
	chosen // the row that keys are for
	alarm  // must be seen
)

// style only takes the sixteen colours that a terminal's own theme defines, on its own background, so that they fit light
// ones and dark ones. Yellow is left out: on white it is not seen.
func (p paint) style() lipgloss.Style {
	s := lipgloss.NewStyle()
	switch p {
	case good:
		return s.Foreground(lipgloss.Green)
	case busy:
		return s.Foreground(lipgloss.Magenta)
	case bad:
		return s.Foreground(lipgloss.Red).Bold(true)
	case faint:
		return s.Faint(true)
	case strong:
		return s.Bold(true)
	case chosen:
		return s.Reverse(true)
	case alarm:
		return s.Reverse(true).Bold(true)
	case plain:
	}
	return s
}

// on paints a text.
func (p paint) on(text string) string {
	if p == plain || text == "" {
		return text
	}
	return p.style().Render(text)
}
