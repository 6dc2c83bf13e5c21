package nodepb

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
)

// readHead returns a head as one string, with its final empty line. One allocation for all its fields is why neither
// net/http nor net/textproto reads it.
func readHead(br *bufio.Reader) (string, error) {
	seen := 0
	for {
		if _, err := br.Peek(seen + 1); err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				return readLongHead(br)
			}
			return "", err
		}
		p, _ := br.Peek(br.Buffered())
		if i := bytes.Index(p[max(0, seen-3):], []byte("\r\n\r\n")); i >= 0 {
			end := max(0, seen-3) + i + 4
			head := string(p[:end])
			_, err := br.Discard(end)
			return head, err
		}
		seen = len(p)
	}
}

// readLongHead reads a head that is larger than the reader's buffer.
func readLongHead(br *bufio.Reader) (string, error) {
	var head []byte
	for {
		line, err := br.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
		head = append(head, line...)
		if len(head) > HeadMax {
			return "", ErrHeadTooLarge
		}
		if bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			return string(head), nil
		}
	}
}

// cutLine splits off the first line of a head.
func cutLine(head string) (line, rest string, ok bool) {
	return strings.Cut(head, "\r\n")
}

// cutField splits a line into name and value.
func cutField(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, ":")
	if !ok || !token(key) {
		return "", "", false
	}
	return key, strings.Trim(value, " \t"), true
}

// headers collects fields of the far side in a http.Header that shares one slice for all values.
type headers struct {
	h      http.Header
	values []string
}

// expect makes room for the fields of that many lines, of which some are ours.
func (f *headers) expect(lines, ours int) {
	lines = max(0, lines-ours)
	f.h = make(http.Header, lines)
	f.values = make([]string, 0, lines)
}

// add keeps a field. Names come in canonical form, because both ends take them out of a http.Header.
func (f *headers) add(key, value string) {
	if old, ok := f.h[key]; ok {
		f.h[key] = append(old, value)
		return
	}
	f.values = append(f.values, value)
	n := len(f.values)
	f.h[key] = f.values[n-1 : n : n]
}
