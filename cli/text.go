package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"iop/edged/adminapi"
)

// printable replaces what could steer a terminal: ids come from clients.
func printable(s string) string {
	clean := func(r rune) bool { return r == ' ' || unicode.IsGraphic(r) && r != unicode.ReplacementChar }
	if strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if clean(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// width is how many columns of a terminal a text takes: East Asian characters and emoji take two, combining marks none.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case isWide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

func isWide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115f || // Hangul Jamo
		r >= 0x2e80 && r <= 0xa4cf && r != 0x303f || // CJK, Kana, Yi
		r >= 0xac00 && r <= 0xd7a3 || // Hangul
		r >= 0xf900 && r <= 0xfaff || // CJK compatibility
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || // full width
		r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f680 && r <= 0x1f6ff || r >= 0x1f900 && r <= 0x1f9ff || // emoji
		r >= 0x20000 && r <= 0x3fffd)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func span(ms int64) string { return adminapi.Span(ms) }

// share shows used of all; all nil = no bound.
func share(used int, all *int) string {
	if all == nil {
		return fmt.Sprintf("%d/∞", used)
	}
	return fmt.Sprintf("%d/%d", used, *all)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
