package cli

import (
	"io"
	"regexp"
	"strings"
	"unicode"
)

const (
	tailMax  = 2 << 10 // of a message
	tailKept = 8 << 10 // of stderr
)

// tail keeps the end of what is read.
type tail struct {
	kept []byte
	cut  bool
}

// read reads to the end, so that the writer is never held up.
func (t *tail) read(r io.Reader) {
	buf := make([]byte, 8<<10)
	for {
		n, err := r.Read(buf)
		t.kept = append(t.kept, buf[:n]...)
		if over := len(t.kept) - tailKept; over > 0 {
			t.kept = append(t.kept[:0], t.kept[over:]...)
			t.cut = true
		}
		if err != nil {
			return
		}
	}
}

// text is what was kept, cleaned. Where it was cut, a part of a secret could stand in front: as much as the longest one is
// left out.
func (t *tail) text(secrets []string) string {
	kept := t.kept
	if t.cut {
		longest := 0
		for _, s := range secrets {
			longest = max(longest, len(s))
		}
		kept = kept[min(longest, len(kept)):]
	}
	return clean(string(kept), secrets)
}

// redacted stands for a secret in a message.
const redacted = "[redacted]"

// secretMin is the length from which a value is a secret rather than a switch such as 1 or true.
const secretMin = 6

// clean makes a text of a command fit for a message: no secrets, no control characters, one line, not longer than tailMax.
func clean(s string, secrets []string) string {
	s = redact(s, secrets)
	s = strings.ToValidUTF8(escapes().ReplaceAllString(s, ""), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	s = redact(s, secrets) // what had a colour in it
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > tailMax {
		s = strings.ToValidUTF8(s[len(s)-tailMax:], "")
	}
	return s
}

func redact(s string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= secretMin {
			s = strings.ReplaceAll(s, secret, redacted)
		}
	}
	return s
}

// escapes are the sequences by which a program colours a terminal or sets its title.
func escapes() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])`)
}
