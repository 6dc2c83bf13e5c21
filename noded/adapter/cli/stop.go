package cli

import "strings"

// stopper finds the first stop sequence in a text that comes in pieces. What might be the beginning of one is held back.
type stopper struct {
	sequences []string
	held      string
}

// take takes the next piece. It returns what can be passed on, and whether a sequence was found: the text before it is the
// last then.
func (s *stopper) take(piece string) (text string, found bool) {
	text = s.held + piece
	s.held = ""
	first := -1
	for _, q := range s.sequences {
		if i := strings.Index(text, q); q != "" && i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first >= 0 {
		return text[:first], true
	}
	keep := 0
	for _, q := range s.sequences {
		for n := min(len(q)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, q[:n]) {
				keep = n
			}
		}
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep], false
}

// rest returns what is held back.
func (s *stopper) rest() string {
	text := s.held
	s.held = ""
	return text
}
