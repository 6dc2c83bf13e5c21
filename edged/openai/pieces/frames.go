// Package pieces reads what a chat answer is made of: the events of a stream, however the network has cut them, and the
// chunks that they carry. respond and anthropic build their own shapes of it; a tunnel passes the bytes on and needs none.
package pieces

import "bytes"

// FrameMax bounds one event of a stream, in bytes.
const FrameMax = 8 << 20

// Frames cuts an event stream (WHATWG HTML 9.2.6) into the data of its events. The zero value is ready.
type Frames struct {
	line []byte // the line at hand, if it came in pieces
	data []byte // of the event at hand
	has  bool   // it has data
	cr   bool   // the last byte was a CR that ended a line
}

// Write takes the next bytes and calls each with the data of every event that is whole, and comment with every comment
// line; both are valid during the call. false: an event is larger than FrameMax.
func (f *Frames) Write(p []byte, each, comment func(b []byte)) bool {
	for len(p) > 0 {
		if f.cr && p[0] == '\n' {
			p = p[1:]
		}
		f.cr = false
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			f.line = append(f.line, p...)
			return len(f.line)+len(f.data) <= FrameMax
		}
		line := p[:end]
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line = f.line
		}
		if len(line)+len(f.data) > FrameMax {
			return false
		}
		f.cr = p[end] == '\r'
		p = p[end+1:]
		if len(line) > 0 && line[0] == ':' {
			comment(line)
		} else {
			f.ended(line, each)
		}
		f.line = f.line[:0]
	}
	return true
}

// ended takes a whole line.
func (f *Frames) ended(line []byte, each func(data []byte)) {
	if len(line) == 0 {
		if f.has {
			each(f.data)
		}
		f.data, f.has = f.data[:0], false
		return
	}
	rest, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(rest) > 0 && rest[0] != ':' {
		return // another field
	}
	if f.has {
		f.data = append(f.data, '\n')
	}
	rest = bytes.TrimPrefix(rest, []byte(":"))
	f.data, f.has = append(f.data, bytes.TrimPrefix(rest, []byte(" "))...), true
}
