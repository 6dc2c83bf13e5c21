package openai

// reader follows the bytes of an answer without holding them back: it maps the model of JSON documents (at their top, and that of a message or response in an event) back to
// the key that the client asked for, and notes the usage. Documents are the whole body, or the data of each event of an
// event stream. It holds back no more than a model's name, and only while the name is arriving.
type reader struct {
	events bool   // it is an event stream
	from   []byte // the served name; empty = the model is left alone
	to     []byte // the JSON string that takes its place

	out   []byte // what write returns, if it is not its argument
	start int    // of the argument of write: before it all is in out
	held  []byte // beginning of a model's name, quote included

	line lineState
	seen int  // of "data:", how many bytes have matched
	cr   bool // the last byte was a CR that ended a line
	open bool // an event has begun and its blank line has not come

	doc   docState
	depth int
	usage int  // at which depth the keys of the usage object are; 0 = not in it
	inner bool // in the message or response that an event of a stream carries
	wrong bool // the last document has an error object at its top
	inKey bool // a string at hand is a key
	field field
	key   [keyBytesMax]byte
	keyN  int
	num   int64
	count counts
	more  bool  // in an object of details inside the usage object
	sieve sieve // what is not for the client
}

// counts are the tokens that a backend reported last; -1 = it said nothing.
type counts struct{ in, out, cached, reasoning int64 }

// keyBytesMax is longer than every key that is looked for.
const keyBytesMax = 32

// field is what the value at hand means.
type field uint8

const (
	fieldNone field = iota
	fieldModel
	fieldUsage
	fieldError
	fieldInner
	fieldIn
	fieldOut
	fieldDetails
	fieldCached
	fieldReasoning
)

// docState is where in a JSON document the reader is.
type docState uint8

const (
	docStart  docState = iota // before the top-level value
	docOpen                   // between tokens
	docString                 // in a string that means nothing
	docEscape
	docKey // in a key that may mean something
	docKeyEscape
	docModel // in the model's name
	docModelEscape
	docNumber // in a count of tokens
	docOff    // nothing more to look for
)

// reset prepares for an answer. served is the model's name at the provider, key that of the client; equal = only the
// usage is of interest.
func (r *reader) reset(events bool, served, key string) {
	*r = reader{
		events: events, from: r.from[:0], to: r.to[:0], out: r.out[:0], held: r.held[:0],
		count: counts{in: -1, out: -1, cached: -1, reasoning: -1},
		sieve: sieve{rest: r.sieve.rest[:0], out: r.sieve.out[:0]},
	}
	if served != key {
		r.from = append(r.from, served...)
		r.to = appendQuoted(r.to, key)
	}
}

// write takes the next bytes and returns those to be sent now: p itself or a buffer that is valid until the next call.
func (r *reader) write(p []byte) []byte {
	out := r.read(p)
	if !r.sieve.on {
		return out
	}
	return r.sieve.write(out)
}

// read takes the next bytes and returns those to be sent now, p itself or a buffer, whoever they are for.
func (r *reader) read(p []byte) []byte {
	r.out, r.start = r.out[:0], 0
	if r.events {
		r.stream(p)
	} else {
		r.json(p, 0, len(p))
	}
	if r.doc == docModel || r.doc == docModelEscape {
		r.held = append(r.held, p[r.start:]...)
		return r.out
	}
	if r.start == 0 && len(r.out) == 0 {
		return p
	}
	r.out = append(r.out, p[r.start:]...)
	return r.out
}

// end returns what is still held back when the answer has ended.
func (r *reader) end() []byte {
	if r.doc == docNumber {
		r.counted()
	}
	r.doc = docOff
	r.out = append(append(r.out[:0], r.sieve.rest...), r.held...)
	r.held, r.sieve.rest = r.held[:0], r.sieve.rest[:0]
	return r.out
}

// toldError tells whether the last document was an error, and is whole.
func (r *reader) toldError() bool { return r.wrong && r.depth == 0 }

// json follows p[i:end] of a document.
func (r *reader) json(p []byte, i, end int) {
	for ; i < end; i++ {
		c := p[i]
		switch r.doc {
		case docString:
			for i < end && p[i] != '"' && p[i] != '\\' {
				i++
			}
			if i == end {
				return
			}
			if r.doc = docOpen; p[i] == '\\' {
				r.doc = docEscape
			}
		case docEscape:
			r.doc = docString
		case docOpen, docStart:
			if !r.looking() && r.depth > 1 {
				i = r.pass(p, i, end)
				continue
			}
			r.between(p, i)
		case docKey:
			switch {
			case c == '"':
				r.doc = docOpen
				r.named()
			case c == '\\':
				r.doc, r.keyN = docKeyEscape, keyBytesMax
			case r.keyN < keyBytesMax:
				r.key[r.keyN] = c
				r.keyN++
			}
		case docKeyEscape:
			r.doc = docKey
		case docModel:
			switch {
			case c == '"':
				r.modelled(p, i)
			case c == '\\':
				r.doc = docModelEscape
			default:
				r.giveUp(p, i)
			}
		case docModelEscape:
			r.doc = docModel
			r.giveUp(p, i)
		case docNumber:
			if '0' <= c && c <= '9' && r.num < 1<<50 {
				r.num = 10*r.num + int64(c-'0')
				continue
			}
			if c == '.' || c == 'e' || c == 'E' || '0' <= c && c <= '9' {
				r.doc, r.field = docOpen, fieldNone // no count
				continue
			}
			r.counted()
			r.between(p, i)
		case docOff:
			return
		}
	}
}

// pass goes on to the next string, or to the end of the container, where nothing can be looked for. It returns the
// index of the last byte it took.
func (r *reader) pass(p []byte, i, end int) int {
	for ; i < end; i++ {
		switch p[i] {
		case '"':
			r.doc = docString
			return i
		case '{', '[':
			r.depth++
		case '}', ']':
			if r.depth <= 5 {
				r.between(p, i)
				return i
			}
			r.depth--
		}
	}
	return end - 1
}

// looking tells whether keys at this depth can mean something.
func (r *reader) looking() bool {
	return r.depth == 1 || r.depth == 2 && r.inner || r.depth > 0 && (r.depth == r.usage || r.more && r.depth == r.usage+1)
}

// between takes a byte that is not inside a string or number.
func (r *reader) between(p []byte, i int) {
	switch c := p[i]; c {
	case '"':
		switch {
		case r.depth == 0:
			r.doc = docOff
		case !r.looking():
			r.doc = docString
		case r.inKey:
			r.doc, r.keyN = docKey, 0
		case r.field == fieldModel && len(r.from) > 0:
			r.out = append(r.out, p[r.start:i]...)
			r.start, r.doc = i, docModel
		default:
			r.doc = docString
		}
	case '{', '[':
		if r.depth == 0 && c == '[' {
			r.doc = docOff
			return
		}
		r.doc = docOpen
		r.depth++
		if r.depth == 1 {
			r.inKey, r.wrong = true, false
		} else if r.depth == 2 && r.field == fieldError && c == '{' {
			r.wrong = true
		} else if r.depth == 2 && r.field == fieldInner && c == '{' {
			r.inner, r.inKey, r.field = true, true, fieldNone
		} else if r.field == fieldUsage && c == '{' && (r.depth == 2 || r.depth == 3 && r.inner) {
			r.usage, r.inKey, r.field = r.depth, true, fieldNone
		} else if r.field == fieldDetails && c == '{' && r.usage > 0 && r.depth == r.usage+1 {
			r.more, r.inKey, r.field = true, true, fieldNone
		}
	case '}', ']':
		if r.depth--; r.depth == 1 {
			r.usage, r.more, r.inner, r.inKey, r.field = 0, false, false, false, fieldNone
		} else if r.depth <= 0 {
			r.doc = docOff
		} else if r.depth < r.usage {
			r.usage, r.more, r.inKey, r.field = 0, false, false, fieldNone
		} else if r.depth == r.usage {
			r.more, r.inKey, r.field = false, false, fieldNone
		}
	case ',':
		if r.looking() {
			r.inKey, r.field = true, fieldNone
		}
	case ':':
		if r.looking() {
			r.inKey = false
		}
	case ' ', '\t', '\n', '\r':
	default:
		switch {
		case r.depth == 0:
			r.doc = docOff
		case '0' <= c && c <= '9' && r.usage > 0 && r.looking() && r.field != fieldNone:
			r.doc, r.num = docNumber, int64(c-'0')
		}
	}
}

// named has a whole key.
func (r *reader) named() {
	r.field = fieldNone
	switch string(r.key[:r.keyN]) {
	case "model":
		if r.depth == 1 || r.depth == 2 && r.inner {
			r.field = fieldModel
		}
	case "usage":
		if r.depth == 1 || r.depth == 2 && r.inner {
			r.field = fieldUsage
		}
	case "message", "response":
		if r.depth == 1 {
			r.field = fieldInner
		}
	case "error":
		if r.depth == 1 {
			r.field = fieldError
		}
	case "prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details":
		if r.depth == r.usage {
			r.field = fieldDetails
		}
	case "cached_tokens":
		if r.more {
			r.field = fieldCached
		}
	case "reasoning_tokens":
		if r.more {
			r.field = fieldReasoning
		}
	case "cache_read_input_tokens":
		if r.depth == r.usage {
			r.field = fieldCached
		}
	case "prompt_tokens", "input_tokens":
		if r.depth == r.usage {
			r.field = fieldIn
		}
	case "completion_tokens", "output_tokens":
		if r.depth == r.usage {
			r.field = fieldOut
		}
	}
}

// counted has a whole count. Later ones replace earlier ones: backends that report more than once report totals.
func (r *reader) counted() {
	switch r.field {
	case fieldIn:
		r.count.in = r.num
	case fieldOut:
		r.count.out = r.num
	case fieldCached:
		r.count.cached = r.num
	case fieldReasoning:
		r.count.reasoning = r.num
	}
	r.doc = docOpen
}
