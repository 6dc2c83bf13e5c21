package openai

import (
	"encoding/json"
	"errors"
	"fmt"
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
