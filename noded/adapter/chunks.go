package adapter

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errChunk: the body is not what RFC 9112 7.1 says.
var errChunk = errors.New("malformed chunk in the answer")

// trailerBytesMax bounds what may follow the last chunk.
const trailerBytesMax = 64 << 10

// chunks reads a chunked body. net/http's own reader waits for the rest of a chunk of which a part has come; this one
// gives what is there, for a token may be in it.
type chunks struct {
	br    *bufio.Reader
	left  int64 // of the chunk that is being read
	begun bool  // a chunk has been read, so a line end precedes the next size
	err   error
}

// Read gives at least one byte, and more only as far as it need not wait for them. io.EOF is the body's orderly end.
func (c *chunks) Read(p []byte) (n int, err error) {
	for c.err == nil && n < len(p) {
		if c.left == 0 {
			if n > 0 && !c.sizeIsHere() {
				return n, nil
			}
			c.err = c.next()
			continue
		}
		if n > 0 && c.br.Buffered() == 0 {
			return n, nil
		}
		part := p[n:]
		if int64(len(part)) > c.left {
			part = part[:c.left]
		}
		m, err := c.br.Read(part)
		n += m
		c.left -= int64(m)
		c.err = noEOF(err)
	}
	if n > 0 {
		return n, nil
	}
	return 0, c.err
}

// sizeIsHere reports whether the next chunk's size has been received.
func (c *chunks) sizeIsHere() bool {
	b, _ := c.br.Peek(c.br.Buffered())
	return len(b) > 2 && bytes.IndexByte(b[2:], '\n') >= 0
}

// next reads up to the next chunk's data. After the last chunk it is io.EOF.
func (c *chunks) next() error {
	if c.begun {
		if line, err := c.line(); err != nil || len(line) != 0 {
			return orChunk(err)
		}
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	c.left, err = chunkSize(line)
	c.begun = true
	if err != nil || c.left > 0 {
		return err
	}
	return c.skipTrailers()
}

// skipTrailers reads the lines after the last chunk up to the empty one.
func (c *chunks) skipTrailers() error {
	for room := trailerBytesMax; room > 0; {
		line, err := c.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
		room -= len(line)
	}
	return errChunk
}

// line reads one line, without its end, which must be CR LF. A line longer than the buffer is malformed.
func (c *chunks) line() ([]byte, error) {
	b, err := c.br.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, errChunk
	case err != nil:
		return nil, noEOF(err)
	case !bytes.HasSuffix(b, []byte("\r\n")):
		return nil, errChunk
	}
	return b[:len(b)-2], nil
}

// chunkSize reads the hexadecimal size at the begin of a line; extensions after it are ignored.
func chunkSize(line []byte) (int64, error) {
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimRight(line, " \t")
	if len(line) == 0 || len(line) > 15 {
		return 0, errChunk
	}
	var n int64
	for _, d := range line {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, errChunk
		}
		n = n<<4 | int64(d)
	}
	return n, nil
}

// noEOF: an end within the body is not its end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func orChunk(err error) error {
	if err == nil {
		return errChunk
	}
	return err
}
