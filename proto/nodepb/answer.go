package nodepb

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
)

// MessageMax bounds Outcome.Message on the wire, in bytes.
const MessageMax = 1024

// Outcome tells how a run ended, as trailers, or as headers of an answer without a backend's head:
//
//	HTTP/1.1 200 OK                   HTTP/1.1 200 OK
//	Transfer-Encoding: chunked        Content-Length: 0
//	Content-Type: …                   Iop-Dispatched: no
//	                                  Iop-Code: connect_failed
//	5
//	hello
//	0
//	Iop-Dispatched: yes
type Outcome struct {
	Dispatched string // yes, no, unknown
	Code       string // "" = as it should
	Message    string
}

// AnswerHead is the head of an answer, node to edge.
type AnswerHead struct {
	Status int
	Header http.Header
	// Over: there is no backend's head and nothing follows; Outcome is set.
	Over    bool
	Outcome Outcome
}

// AppendAnswer adds the head of an answer that chunks follow.
func AppendAnswer(b []byte, status int, h http.Header) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, " \r\n"...)
	b = appendFields(b, h)
	if n := h["Content-Length"]; len(n) > 0 && clean(n[0]) {
		b = appendField(b, HeaderLength, n[0])
	}
	return append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
}

// AppendOver adds an answer that is only an outcome.
func AppendOver(b []byte, o Outcome) []byte {
	b = append(b, "HTTP/1.1 200 \r\nContent-Length: 0\r\n"...)
	b = appendOutcome(b, o)
	return append(b, "\r\n"...)
}

func appendOutcome(b []byte, o Outcome) []byte {
	b = appendField(b, HeaderDispatched, o.Dispatched)
	b = appendText(b, HeaderCode, o.Code)
	return appendText(b, HeaderMessage, o.Message[:min(len(o.Message), MessageMax)])
}

// ReadAnswer reads the head of an answer from br into a.
func ReadAnswer(br *bufio.Reader, a *AnswerHead) error {
	head, err := readHead(br)
	if err != nil {
		return err
	}
	line, rest, _ := cutLine(head)
	status, ok := strings.CutPrefix(line, "HTTP/1.1 ")
	if !ok || len(status) < 3 {
		return ErrMalformed
	}
	n, err := strconv.Atoi(status[:3])
	if err != nil || n < 100 || n > 999 {
		return ErrMalformed
	}
	*a = AnswerHead{Status: n}
	var fields headers
	fields.expect(strings.Count(rest, "\n"), 2)
	for {
		line, rest, _ = cutLine(rest)
		if line == "" {
			break
		}
		key, value, ok := cutField(line)
		if !ok {
			return ErrMalformed
		}
		switch {
		case a.Outcome.set(key, value), key == "Content-Length", key == "Transfer-Encoding":
		case key == HeaderLength:
			fields.add("Content-Length", value)
		default:
			fields.add(key, value)
		}
	}
	a.Header = fields.h
	a.Over = a.Outcome.Dispatched != ""
	return nil
}

// set keeps a field of an outcome; false: it is none.
func (o *Outcome) set(key, value string) bool {
	switch key {
	case HeaderDispatched:
		o.Dispatched = value
	case HeaderCode:
		o.Code = value
	case HeaderMessage:
		o.Message = value
	default:
		return false
	}
	return true
}
