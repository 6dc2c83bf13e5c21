package openai

import (
	"bytes"
	"encoding/json"

	"iop/fsm"
)

// wantUsage is the stream_options with which a backend tells at the end of a stream what it used.
const wantUsage = `{"include_usage":true}`

// asksUsage tells whether the usage of a stream must be asked for. Answers that are no streams always tell it, and so do
// those of the other APIs.
func (x *exchange) asksUsage() bool {
	return x.streams && (x.route == &routeChat || x.route == &routeCompletions) && x.catalog.CountTokens
}

// askUsage sets include_usage in the client's own stream_options. If the client did not set it, or to false, the chunk that
// it brings is not for the client.
func (x *exchange) askUsage(m member) {
	options := map[string]json.RawMessage{}
	value := x.body[m.from:m.to]
	if json.Unmarshal(value, &options) != nil {
		return // what it means is for the backend to say
	}
	x.hides = string(options["include_usage"]) != "true"
	if !x.hides {
		return
	}
	if options == nil { // null
		options = map[string]json.RawMessage{}
	}
	options["include_usage"] = json.RawMessage("true")
	text, err := json.Marshal(options)
	if err != nil {
		return // it was read a moment ago
	}
	x.edits = append(x.edits, edit{from: m.from, to: m.to, text: string(text)})
}

// Used is what the backend of the last run reported. It says nothing if the backend did not: tokens are not guessed from
// the chunks of a stream.
func (x *exchange) Used() fsm.Usage {
	c := &x.answer.reader.count
	if c.in < 0 && c.out < 0 {
		return fsm.Usage{}
	}
	return fsm.Usage{
		Told: true, Prompt: max(c.in, 0), Completion: max(c.out, 0), Cached: max(c.cached, 0), Reasoning: max(c.reasoning, 0),
	}
}

// sieveMax bounds an event that is held back until its end is there; a larger one is no chunk of usage.
const sieveMax = 64 << 10

// sieve takes the chunk out of a stream that has only usage, which the client did not ask for.
type sieve struct {
	on   bool
	rest []byte // of an event that has not ended
	out  []byte
}

// write takes the next bytes and returns those that are for the client, valid until the next call.
func (s *sieve) write(p []byte) []byte {
	if len(s.rest) == 0 && eventEnd(p) == len(p) && !bytes.Contains(p, []byte(`"usage"`)) {
		return p // the chunk that most are: one whole event
	}
	s.rest = append(s.rest, p...)
	s.out = s.out[:0]
	b := s.rest
	for n := eventEnd(b); n > 0; n = eventEnd(b) {
		if !usageOnly(b[:n]) {
			s.out = append(s.out, b[:n]...)
		}
		b = b[n:]
	}
	if len(b) > sieveMax {
		s.out = append(s.out, b...)
		b = nil
	}
	s.rest = append(s.rest[:0], b...)
	return s.out
}

// eventEnd is the length of the first event with the blank line at its end, 0 if that has not come.
func eventEnd(b []byte) int {
	for i := 0; i < len(b); {
		end := lineEnd(b, i)
		if end == len(b) {
			return 0
		}
		blank := end == i
		if i = end + 1; b[end] == '\r' && i < len(b) && b[i] == '\n' {
			i++
		}
		if blank {
			return i
		}
	}
	return 0
}

// usageOnly tells of an event that it is a chunk without choices that tells the usage.
func usageOnly(event []byte) bool {
	if !bytes.Contains(event, []byte(`"usage"`)) {
		return false
	}
	var data []byte
	for _, line := range bytes.FieldsFunc(event, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if text, ok := bytes.CutPrefix(line, []byte(dataField)); ok {
			data = append(append(data, text...), '\n')
		}
	}
	var chunk struct {
		Choices *[]json.RawMessage
		Usage   map[string]json.RawMessage
	}
	return json.Unmarshal(data, &chunk) == nil && chunk.Choices != nil && len(*chunk.Choices) == 0 && len(chunk.Usage) > 0
}
