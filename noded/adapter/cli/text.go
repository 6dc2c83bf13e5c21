package cli

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// textDecoder passes an output on as it comes: CRLF becomes LF, bytes that are no UTF-8 become U+FFFD, and the line ends at
// the very end are left out.
type textDecoder struct {
	r     *reply
	held  []byte // the beginning of a character, or a CR
	lines int    // line ends that have come and whose text has not
	began bool
}

func (d *textDecoder) feed(p []byte) error {
	d.held = append(d.held, p...)
	whole := wholeLength(d.held)
	text := d.held[:whole]
	err := d.say(text)
	d.held = append(d.held[:0], d.held[whole:]...)
	return err
}

func (d *textDecoder) end() error {
	err := d.say(d.held)
	d.held = nil
	return err
}

// missing is nothing: a program may have nothing to say.
func (d *textDecoder) missing() string { return "" }

// say passes text on but for the line ends at its end, of which nobody knows yet whether more follows.
func (d *textDecoder) say(text []byte) error {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	body := bytes.TrimRight(text, "\n")
	if len(body) == 0 {
		d.lines += len(text)
		return nil
	}
	s := strings.ToValidUTF8(string(body), "\uFFFD")
	if d.began {
		s = strings.Repeat("\n", min(d.lines, blankLinesMax)) + s
	}
	d.began, d.lines = true, len(text)-len(body)
	return d.r.text(s)
}

// blankLinesMax bounds the line ends between two texts.
const blankLinesMax = 1 << 16

// wholeLength is how much of p does not end within a character or between CR and LF.
func wholeLength(p []byte) int {
	if len(p) > 0 && p[len(p)-1] == '\r' {
		return len(p) - 1
	}
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		c := p[len(p)-back]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-back:]) {
				return len(p) - back
			}
			return len(p)
		}
	}
	return len(p)
}
