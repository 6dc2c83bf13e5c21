package openai

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// key is a top-level member of a request's body that this package looks at.
type key uint8

const (
	keyNone key = iota
	keyModel
	keyStream
	keyText  // messages, prompt, input, suffix, instructions: text for the model
	keyTools // tools, functions: text whose names count too
	// From here on: what a generation policy can set.
	keyMaxTokens
	keyMaxCompletion
	keyMaxOutput
	keyTemperature
	keyTopP
	keyTopK
	keyMinP
	keyPresence
	keyFrequency
	keyRepetition
	keySeed
	keyStop
	keyReasoning
)

// keyOf must stay a switch over string(b): that does not allocate.
func keyOf(b []byte) key {
	switch string(b) {
	case "model":
		return keyModel
	case "stream":
		return keyStream
	case "messages", "prompt", "input", "suffix", "instructions":
		return keyText
	case "tools", "functions":
		return keyTools
	case "max_tokens":
		return keyMaxTokens
	case "max_completion_tokens":
		return keyMaxCompletion
	case "max_output_tokens":
		return keyMaxOutput
	case "temperature":
		return keyTemperature
	case "top_p":
		return keyTopP
	case "top_k":
		return keyTopK
	case "min_p":
		return keyMinP
	case "presence_penalty":
		return keyPresence
	case "frequency_penalty":
		return keyFrequency
	case "repetition_penalty":
		return keyRepetition
	case "seed":
		return keySeed
	case "stop":
		return keyStop
	case "reasoning_effort":
		return keyReasoning
	}
	return keyNone
}

// member is a top-level member with a key that is looked at: its value is body[from:to].
type member struct {
	key      key
	from, to int
}

// membersMax bounds how often the keys that are looked at may occur in one body; more is no honest request.
const membersMax = 64

// depthMax is how deep values may nest, as in encoding/json.
const depthMax = 10000

// scanner goes once over a JSON object, checks that it is valid (as encoding/json sees it), and notes the members that
// are looked at and how much text there is for the model. It decodes nothing.
type scanner struct {
	b       []byte
	i       int
	open    int // behind the opening brace
	members []member
	text    tally
}

// errTooMany and errNotObject are the refusals of bodies that may be valid JSON.
var (
	errTooMany   = errors.New("the same keys occur too often")
	errNotObject = errors.New("the body must be a JSON object")
)

// syntaxError is where a body stops being JSON.
type syntaxError struct {
	at   int
	want string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: expected %s", e.at, e.want)
}

func (s *scanner) fail(want string) error { return &syntaxError{at: s.i, want: want} }

// scan looks through b. The scanner is valid until b changes.
func (s *scanner) scan(b []byte) error {
	s.b, s.i, s.members, s.text = b, 0, s.members[:0], tally{}
	s.space()
	if s.peek() != '{' {
		if !json.Valid(b) {
			return s.fail("{")
		}
		return errNotObject
	}
	s.i++
	s.open = s.i
	s.space()
	if s.peek() == '}' {
		s.i++
		return s.end()
	}
	for {
		if err := s.member(); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
			s.space()
		case '}':
			s.i++
			return s.end()
		default:
			return s.fail("',' or '}'")
		}
	}
}

func (s *scanner) end() error {
	s.space()
	if s.i != len(s.b) {
		return s.fail("nothing after the object")
	}
	return nil
}

// member reads one top-level member.
func (s *scanner) member() error {
	k, err := s.topKey()
	if err != nil {
		return err
	}
	s.space()
	if s.peek() != ':' {
		return s.fail("':'")
	}
	s.i++
	s.space()
	s.text.what = countNone
	switch k {
	case keyText:
		s.text.what = countValues
	case keyTools:
		s.text.what = countAll
	}
	from := s.i
	if err := s.value(); err != nil {
		return err
	}
	if k == keyNone {
		return nil
	}
	if len(s.members) == membersMax {
		return errTooMany
	}
	s.members = append(s.members, member{key: k, from: from, to: s.i})
	return nil
}

func (s *scanner) topKey() (key, error) {
	s.text.what = countNone
	from := s.i
	plain, err := s.str()
	if err != nil {
		return keyNone, err
	}
	if plain {
		return keyOf(s.b[from+1 : s.i-1]), nil
	}
	var name string
	if json.Unmarshal(s.b[from:s.i], &name) != nil {
		return keyNone, s.fail("a key")
	}
	return keyOf([]byte(name)), nil
}

// peek is the byte at hand, 0 at the end (which no value begins with).
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// value reads the value at hand, however deep.
func (s *scanner) value() error {
	if c := s.peek(); c != '{' && c != '[' {
		return s.scalar()
	}
	return s.nested()
}

func (s *scanner) scalar() error {
	switch c := s.peek(); {
	case c == '"':
		from := s.i
		was := s.text.sum
		plain, err := s.str()
		if err == nil && s.text.what != countNone {
			s.text.value(s.b[from+1:s.i-1], plain, was)
		}
		return err
	case c == '-' || '0' <= c && c <= '9':
		s.text.number()
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.fail("a value")
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return s.fail(w)
	}
	s.i += len(w)
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return s.fail("a digit")
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return s.fail("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.fail("a digit")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// nested reads an object or array. The kinds of the open containers are bits, so that depth costs no recursion.
func (s *scanner) nested() error {
	var objects [depthMax/64 + 1]uint64
	for depth := 1; ; { // the top-level object is the first
		// A value is at hand.
		switch c := s.peek(); c {
		case '{', '[':
			if depth++; depth > depthMax {
				return s.fail("less depth")
			}
			s.i++
			bit := uint64(1) << (depth % 64)
			if c == '{' {
				objects[depth/64] |= bit
			} else {
				objects[depth/64] &^= bit
			}
			s.space()
			if end := s.peek(); c == '{' && end != '}' {
				if err := s.innerKey(); err != nil {
					return err
				}
				continue
			} else if c == '[' && end != ']' {
				continue
			}
		default:
			if err := s.scalar(); err != nil {
				return err
			}
		}
		// A value has ended.
		for more := false; !more; {
			s.space()
			inObject := objects[depth/64]&(1<<(depth%64)) != 0
			switch c := s.peek(); {
			case c == '}' && inObject, c == ']' && !inObject:
				s.i++
				if depth--; depth == 1 {
					return nil
				}
				continue
			case c == ',' && inObject:
				s.i++
				s.space()
				if err := s.innerKey(); err != nil {
					return err
				}
			case c == ',':
				s.i++
				s.space()
			default:
				return s.fail("',' or the end of the " + map[bool]string{true: "object", false: "array"}[inObject])
			}
			more = true
		}
	}
}

// innerKey reads a key of a nested object and its colon.
func (s *scanner) innerKey() error {
	if s.peek() != '"' {
		return s.fail("a key")
	}
	from, was := s.i, s.text.sum
	plain, err := s.str()
	if err != nil {
		return err
	}
	if s.text.what != countNone {
		s.text.key(s.b[from+1:s.i-1], plain, was)
	}
	s.space()
	if s.peek() != ':' {
		return s.fail("':'")
	}
	s.i++
	s.space()
	return nil
}

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
