package openai

import "encoding/binary"

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str reads a string, quotes included, and weighs its text. plain = it has no escapes.
func (s *scanner) str() (plain bool, err error) {
	if s.peek() != '"' {
		return false, s.fail("'\"'")
	}
	b, i, sum := s.b, s.i+1, s.text.sum
	plain = true
	for {
		// Eight bytes at once, while none of them is a quote, a backslash or a control character.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^(lows*'"'), w^(lows*'\\')
			if ((w-lows*0x20)&^w|(quote-lows)&^quote|(slash-lows)&^slash)&highs != 0 {
				break
			}
			if w&highs == 0 {
				sum += 8 * weightASCII
			} else {
				for _, c := range b[i : i+8] {
					sum += int64(weights[c])
				}
			}
			i += 8
		}
		if i >= len(b) {
			s.i = i
			return plain, s.fail("the end of the string")
		}
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			if s.text.what != countNone {
				s.text.sum = sum
			}
			return plain, nil
		case c == '\\':
			plain = false
			n, weight := escape(b[i:])
			if n == 0 {
				s.i = i
				return plain, s.fail("a valid escape")
			}
			i, sum = i+n, sum+weight
		case c < 0x20:
			s.i = i
			return plain, s.fail("no raw control character in a string")
		default:
			sum += int64(weights[c])
			i++
		}
	}
}

// escape measures the escape sequence at the start of b and weighs it; n = 0: it is none.
func escape(b []byte) (n int, weight int64) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, weightASCII
	case 'u':
	default:
		return 0, 0
	}
	if len(b) < 6 {
		return 0, 0
	}
	r := 0
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, 0
		}
		r = r<<4 | int(c)
	}
	switch {
	case r < 0x80:
		return 6, weightASCII
	case r < 0x800:
		return 6, weightTwo
	case 0xd800 <= r && r < 0xe000:
		return 6, weightFour / 2
	}
	return 6, weightThree
}
