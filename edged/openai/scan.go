package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

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

// errTooMany, errNotObject and errCase are the refusals of bodies that may be valid JSON.
var (
	errTooMany   = errors.New("the same keys occur too often")
	errNotObject = errors.New("the body must be a JSON object")
	errCase      = errors.New("some backends take it for the same key in lower case, and others leave it out: write it in lower case")
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
		return exactly(s.b[from+1 : s.i-1])
	}
	var name string
	if json.Unmarshal(s.b[from:s.i], &name) != nil {
		return keyNone, s.fail("a key")
	}
	return exactly([]byte(name))
}

// exactly is keyOf for a key that nobody can read as another one. Backends that are written in Go take "Model" for "model":
// beside the right one it would name another model than the one that was admitted, and lift the policy's caps.
func exactly(name []byte) (key, error) {
	k := keyOf(name)
	if k != keyNone || len(name) > foldedMax {
		return k, nil
	}
	var buf [foldedMax]byte
	folded := buf[:0]
	for _, r := range string(name) {
		switch {
		case 'A' <= r && r <= 'Z':
			r += 'a' - 'A'
		case r == 'ſ': // Unicode folds these two into ASCII, and so does encoding/json
			r = 's'
		case r == '\u212a': // the sign of Kelvin
			r = 'k'
		case r >= utf8.RuneSelf:
			return keyNone, nil
		}
		folded = append(folded, byte(r))
	}
	if keyOf(folded) != keyNone {
		return keyNone, fmt.Errorf("the key %q: %w", name, errCase)
	}
	return keyNone, nil
}

// foldedMax is more than the longest key that is looked at has, written with letters of three bytes.
const foldedMax = 64

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
