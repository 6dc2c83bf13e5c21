package top

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"iop/edged/adminapi"
)

// graphemeMax bounds what is piled up in one place, in bytes.
const graphemeMax = 24

// clean makes a text safe to show: nothing in it steers a terminal, and it is as wide as the screen is told. What can't be
// shown is written as in Go ("\x1b", "\u200d"): control characters, invisible ones, those whose width terminals don't agree
// on, and without Unicode everything beyond ASCII.
func clean(s string, utf8 bool) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	var b strings.Builder
	for rest := s; rest != ""; {
		seq, width := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		n := max(1, len(seq))
		if utf8 && width > 0 && n <= graphemeMax && width == ansi.StringWidthWc(seq) && visible(seq) {
			b.WriteString(seq)
		} else {
			quote(&b, rest[:n])
		}
		rest = rest[n:]
	}
	return b.String()
}

func visible(s string) bool {
	for _, r := range s {
		switch {
		case r == ' ':
		case !unicode.IsGraphic(r), unicode.Is(unicode.Zs, r), r == unicode.ReplacementChar:
			return false
		case r == 0x115f, r == 0x1160, r == 0x2800, r == 0x3164, r == 0xffa0: // fillers: letters and a pattern that are blank
			return false
		}
	}
	return true
}

func quote(b *strings.Builder, s string) {
	for _, r := range s {
		if r >= ' ' && r < 0x7f {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
}

// fit cuts a clean text to a width, or pads it.
func (s *scene) fit(text string, width int, right bool) string {
	if width <= 0 {
		return ""
	}
	w := ansi.StringWidth(text)
	if w > width {
		text = ansi.Truncate(text, width, s.glyphs.more)
		w = ansi.StringWidth(text)
	}
	pad := strings.Repeat(" ", max(0, width-w))
	if right {
		return pad + text
	}
	return text + pad
}

// id cuts a clean id in the middle: those of requests begin the same, and differ at the end.
func (s *scene) id(text string, width int) string {
	const begin = 4
	over := ansi.StringWidth(text) - width
	if over <= 0 || width < 2*begin {
		return text
	}
	gone := begin + over + ansi.StringWidth(s.glyphs.more)
	end := ansi.TruncateLeft(text, gone, "")
	if ansi.StringWidth(end) > width-begin-1 { // a wide character lay across
		end = ansi.TruncateLeft(text, gone+1, "")
	}
	return ansi.Truncate(text, begin, "") + s.glyphs.more + end
}

// clean is clean for this terminal.
func (s *scene) clean(text string) string { return clean(text, s.unicode) }

// seconds shows an age in whole seconds: below a minute tenths would only flicker.
func seconds(ms int64) string {
	if ms = max(0, ms); ms < 60_000 {
		return fmt.Sprintf("%ds", ms/1000)
	}
	return adminapi.Span(ms)
}

// rate shows a number per second.
func rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
