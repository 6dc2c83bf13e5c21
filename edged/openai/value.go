package openai

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
