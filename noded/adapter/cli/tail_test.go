package cli

import (
	"strings"
	"testing"
)

func TestLastWordsHoldNoSecret(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	for name, said := range map[string]string{
		"plain":            "the key " + secret + " is wrong",
		"coloured":         "\x1b[1m\x1b[31mkey\x1b[0m \x1b]0;title\x07" + secret,
		"cut in a secret":  strings.Repeat("x", tailMax) + secret + strings.Repeat("y", tailKept-10),
		"many":             strings.Repeat(secret+"\n", 2000),
		"after much noise": strings.Repeat("noise\n", 5000) + secret,
	} {
		var l tail
		l.read(strings.NewReader(said))
		got := l.text([]string{secret, "1"})
		for n := 6; n <= len(secret); n++ {
			if strings.Contains(got, secret[len(secret)-n:]) || strings.Contains(got, secret[:n]) {
				t.Fatalf("%s: %d bytes of the secret are in %.200q", name, n, got)
			}
		}
		if len(got) > tailMax || strings.ContainsAny(got, "\x1b\x07\n\r") {
			t.Errorf("%s: %d bytes, %.200q", name, len(got), got)
		}
	}
}

// A secret in an escape sequence's disguise is one all the same.
func TestASecretWithColourInItIsNotShown(t *testing.T) {
	if got := clean("key sk-secret\x1b[0m-value!", []string{"sk-secret-value"}); strings.Contains(got, "sk-secret-value") {
		t.Errorf("%q", got)
	}
}

func TestStopSequences(t *testing.T) {
	for name, c := range map[string]struct {
		stop, pieces []string
		want         string
		found        bool
	}{
		"none":              {nil, []string{"a", "b"}, "ab", false},
		"over pieces":       {[]string{"END"}, []string{"aE", "N", "Db"}, "a", true},
		"beginning only":    {[]string{"END"}, []string{"aEN", "x"}, "aENx", false},
		"held at the end":   {[]string{"END"}, []string{"aEN"}, "aEN", false},
		"the first of two":  {[]string{"zz", "b"}, []string{"abzz"}, "a", true},
		"overlapping heads": {[]string{"aab"}, []string{"aa", "ab"}, "a", true},
	} {
		s := stopper{sequences: c.stop}
		var got string
		var found bool
		for _, p := range c.pieces {
			var text string
			text, found = s.take(p)
			if got += text; found {
				break
			}
		}
		if !found {
			got += s.rest()
		}
		if got != c.want || found != c.found {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, found, c.want, c.found)
		}
	}
}
