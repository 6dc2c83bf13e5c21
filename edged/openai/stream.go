package openai

import "bytes"

// lineState is where in a line of an event stream the reader is.
type lineState uint8

const (
	lineBegin lineState = iota // the first bytes, as long as they are those of "data:"
	lineData                   // in the data
	lineOther                  // in any other line
)

const dataField = "data:"

// stream follows an event stream (WHATWG HTML 9.2.6): lines end with CR, LF or both; the data of several data lines
// of one event are one document.
func (r *reader) stream(p []byte) {
	for i := 0; i < len(p); {
		if r.cr {
			r.cr = false
			if p[i] == '\n' {
				i++
				continue
			}
		}
		switch r.line {
		case lineBegin:
			switch c := p[i]; {
			case c == '\n' || c == '\r':
				r.endLine(p, i, r.seen == 0)
			case c == dataField[r.seen]:
				r.open = true
				if r.seen++; r.seen == len(dataField) {
					r.line = lineData
				}
			default:
				r.open, r.line = true, lineOther
			}
			i++
		default:
			end := lineEnd(p, i)
			if r.line == lineData {
				r.json(p, i, end)
			}
			if end < len(p) {
				r.endLine(p, end, false)
				end++
			}
			i = end
		}
	}
}

// endLine is the end of a line at p[i]; blank = of an empty one, which ends the event.
func (r *reader) endLine(p []byte, i int, blank bool) {
	r.cr = p[i] == '\r'
	r.line, r.seen = lineBegin, 0
	switch r.doc {
	case docNumber:
		r.counted()
	case docModel, docModelEscape:
		r.release(p, i)
		r.doc = docOff
	case docString, docEscape, docKey, docKeyEscape: // a string can't hold a line end
		r.doc = docOff
	}
	if blank {
		r.open = false
		r.doc, r.depth, r.usage, r.more, r.inner, r.inKey, r.field = docStart, 0, 0, false, false, false, fieldNone
	}
}

// lineEnd is the index of the first CR or LF from i on, or len(p).
func lineEnd(p []byte, i int) int {
	end := len(p)
	if n := bytes.IndexByte(p[i:], '\n'); n >= 0 {
		end = i + n
	}
	if n := bytes.IndexByte(p[i:end], '\r'); n >= 0 {
		end = i + n
	}
	return end
}

// close is what ends the event at hand, so that another can follow.
func (r *reader) close() string {
	switch {
	case r.line != lineBegin || r.seen > 0:
		return "\n\n"
	case r.open:
		return "\n"
	}
	return ""
}
