package cli

import (
	"errors"
	"fmt"
)

// Parser is how a command's output is read.
type Parser string

// The parsers.
const (
	ParserText  Parser = "text"       // all of it is the answer
	ParserLines Parser = "json_lines" // one JSON object a line; other lines are passed over
	ParserSSE   Parser = "sse"        // server-sent events with one JSON object each
)

// Dialect is what the objects of a command's output mean.
type Dialect string

// The dialects.
const (
	DialectAuto   Dialect = "" // told from the first object that is known
	DialectCodex  Dialect = "codex"
	DialectClaude Dialect = "claude"
	DialectGemini Dialect = "gemini"
)

// decoder takes a command's output piece by piece, and tells what it finds to a reply.
type decoder interface {
	// feed takes the next bytes, cut anywhere. p is valid only during the call.
	feed(p []byte) error
	// end says that no more will come. The command has exited by then.
	end() error
	// missing says what the output lacks at its end to be whole; "" if nothing.
	missing() string
}

// lineMax is the longest line of json_lines and sse. A longer one is an error: what it says would be lost.
const lineMax = 4 << 20

var (
	errLineTooLong = fmt.Errorf("a line of the command's output is longer than %d bytes", lineMax)
	errOutputMax   = errors.New("the command has written more than its output limit allows")
	errStopFound   = errors.New("a stop sequence was found") // the orderly end of an answer
)

// newDecoder returns the decoder that a configuration asks for.
func newDecoder(c *Config, r *reply) decoder {
	switch c.Parser {
	case ParserLines:
		return &lineDecoder{object: meaning(c.Dialect, c.Fields, r)}
	case ParserSSE:
		f := c.Fields
		if f == nil {
			f = chunkFields()
		}
		return &sseDecoder{lines: lineDecoder{}, object: meaning("", f, r)}
	default:
		return &textDecoder{r: r}
	}
}

// meaning returns what reads one object.
func meaning(d Dialect, f *Fields, r *reply) dialect {
	if f != nil {
		return &mapped{f: f, r: r}
	}
	switch d {
	case DialectCodex:
		return newCodex(r)
	case DialectClaude:
		return newClaude(r)
	case DialectGemini:
		return newGemini(r)
	default:
		return &guessed{r: r}
	}
}

// dialect reads the objects of an output, one after another.
type dialect interface {
	object(line []byte) error
	// missing says what an output lacks at its end to be whole; "" if nothing.
	missing() string
}
