package adapter

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"
)

// unframed reads a body that has neither a length nor chunks: it ends where the connection ends, and so does a body
// whose backend was killed. The end of an event stream, or of JSON, is therefore only believed if it looks like one;
// else it is io.ErrUnexpectedEOF. Of other media types nothing can be told.
type unframed struct {
	io.ReadCloser
	look interface {
		write(p []byte)
		whole() bool
	}
}

// isUnframed tells whether only the connection's end is the end of the body.
func isUnframed(resp *http.Response) bool {
	return resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.Header.Get("Content-Encoding") == ""
}

// watchEnd returns the body under the eyes of what knows its media type.
func watchEnd(resp *http.Response) io.ReadCloser {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return &unframed{ReadCloser: resp.Body, look: &lastEvents{}}
	case kind == "application/json", strings.HasSuffix(kind, "+json"):
		return &unframed{ReadCloser: resp.Body, look: &brackets{}}
	}
	return resp.Body
}

func (u *unframed) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.look.write(p[:n])
	if err == io.EOF && !u.look.whole() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// brackets follows JSON: it is whole when every bracket is closed.
type brackets struct {
	depth             int
	inString, escaped bool
}

func (b *brackets) write(p []byte) {
	for _, c := range p {
		switch {
		case b.escaped:
			b.escaped = false
		case b.inString:
			b.inString, b.escaped = c != '"', c == '\\'
		case c == '"':
			b.inString = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
		}
	}
}

func (b *brackets) whole() bool { return b.depth <= 0 && !b.inString }

// lastEvents follows an event stream: it is whole when something said that it ends: [DONE], a choice's reason to
// finish, or the name of a last event of the Responses and Messages APIs.
type lastEvents struct {
	line  []byte // the one at hand, of a long one the first lineMax bytes
	ended bool
}

// lineMax is how much of a line is looked at: a chunk with a finish_reason is short.
const lineMax = 16 << 10

func (l *lastEvents) write(p []byte) {
	for !l.ended && len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		part := p
		if end >= 0 {
			part = p[:end]
		}
		l.line = append(l.line, part[:min(len(part), lineMax-len(l.line))]...)
		if end < 0 {
			return
		}
		l.endLine()
		p = p[end+1:]
	}
}

func (l *lastEvents) endLine() {
	if data, ok := bytes.CutPrefix(l.line, []byte("data:")); ok {
		data = bytes.TrimSpace(data)
		l.ended = string(data) == "[DONE]" || finishes(data)
	} else if name, ok := bytes.CutPrefix(l.line, []byte("event:")); ok {
		switch string(bytes.TrimSpace(name)) {
		case "message_stop", "response.completed", "response.failed", "response.incomplete", "response.cancelled":
			l.ended = true
		}
	}
	l.line = l.line[:0]
}

// finishes tells whether a chunk has a finish_reason that is not null.
func finishes(data []byte) bool {
	_, after, ok := bytes.Cut(data, []byte(`"finish_reason"`))
	if !ok {
		return false
	}
	after = bytes.TrimLeft(after, " \t:")
	return len(after) > 0 && after[0] == '"'
}

func (l *lastEvents) whole() bool {
	if !l.ended {
		l.endLine() // the last line may lack its end
	}
	return l.ended
}
