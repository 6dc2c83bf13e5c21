package nodepb

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
)

// Request is the head of a data exchange, edge to node. The body follows it: ContentLength bytes.
//
//	POST /v1/chat/completions HTTP/1.1
//	Host: node
//	Iop-Run: 17
//	Iop-Lease: 4711
//	Iop-Generation: 3
//	Iop-Kind: tunnel
//	Iop-Provider: gpu-1
//	…                            the other fields of ours, then the client's
//	Content-Length: 512
type Request struct {
	Method, Path           string
	Run, Lease, Generation uint64
	Kind                   string
	Provider, Adapter      string
	Served                 string
	Revision               uint64 // the run needs this configuration or a newer one; 0 = any
	TimeoutMS              uint64 // 0 = none
	Trace                  string
	ID                     string // the request's, as its client knows it
	Header                 http.Header
	ContentLength          int64
}

// AppendRequest adds r's head to b. ErrMalformed: method or path can't travel. ErrHeadTooLarge: it is beyond HeadMax.
func AppendRequest(b []byte, r *Request) ([]byte, error) {
	if !token(r.Method) || !target(r.Path) {
		return b, ErrMalformed
	}
	start := len(b)
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Path...)
	b = append(b, " HTTP/1.1\r\nHost: node\r\n"...)
	b = appendNumber(b, HeaderRun, r.Run)
	b = appendNumber(b, HeaderLease, r.Lease)
	b = appendNumber(b, HeaderGeneration, r.Generation)
	b = appendText(b, HeaderKind, r.Kind)
	b = appendText(b, HeaderProvider, r.Provider)
	b = appendText(b, HeaderAdapter, r.Adapter)
	b = appendText(b, HeaderServed, r.Served)
	if r.Revision > 0 {
		b = appendNumber(b, HeaderRevision, r.Revision)
	}
	if r.TimeoutMS > 0 {
		b = appendNumber(b, HeaderTimeoutMS, r.TimeoutMS)
	}
	b = appendText(b, HeaderTrace, r.Trace)
	b = appendText(b, HeaderRequest, r.ID)
	b = appendFields(b, r.Header)
	b = appendNumber(b, "Content-Length", uint64(r.ContentLength))
	b = append(b, "\r\n"...)
	if len(b)-start > HeadMax {
		return b[:start], ErrHeadTooLarge
	}
	return b, nil
}

// ReadRequest reads the next head from br into r. io.EOF: the edge closed the connection between two exchanges.
func ReadRequest(br *bufio.Reader, r *Request) error {
	head, err := readHead(br)
	if err != nil {
		return err
	}
	line, rest, _ := cutLine(head)
	method, line, ok1 := strings.Cut(line, " ")
	path, version, ok2 := strings.Cut(line, " ")
	if !ok1 || !ok2 || version != "HTTP/1.1" || !token(method) {
		return ErrMalformed
	}
	*r = Request{Method: method, Path: path, ContentLength: -1}
	var fields headers
	fields.expect(strings.Count(rest, "\n"), 12)
	for {
		line, rest, _ = cutLine(rest)
		if line == "" {
			break
		}
		key, value, ok := cutField(line)
		if !ok {
			return ErrMalformed
		}
		own, err := r.set(key, value)
		if err != nil {
			return err
		}
		if !own {
			fields.add(key, value)
		}
	}
	r.Header = fields.h
	if r.Run == 0 || r.ContentLength < 0 {
		return ErrMalformed
	}
	return nil
}

// set keeps a field of ours; false: it is the client's. One of ours that this version does not know is passed over.
func (r *Request) set(key, value string) (own bool, err error) {
	switch key {
	case HeaderRun:
		r.Run, err = number(value)
	case HeaderLease:
		r.Lease, err = number(value)
	case HeaderGeneration:
		r.Generation, err = number(value)
	case HeaderKind:
		r.Kind = value
	case HeaderProvider:
		r.Provider = value
	case HeaderAdapter:
		r.Adapter = value
	case HeaderServed:
		r.Served = value
	case HeaderRevision:
		r.Revision, err = number(value)
	case HeaderTimeoutMS:
		r.TimeoutMS, err = number(value)
	case HeaderTrace:
		r.Trace = value
	case HeaderRequest:
		r.ID = value
	case "Content-Length":
		var n uint64
		n, err = number(value)
		r.ContentLength = int64(n)
	case "Host":
	case "Transfer-Encoding":
		err = ErrMalformed
	default:
		return strings.HasPrefix(key, HeaderPrefix), nil
	}
	return true, err
}

func number(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, ErrMalformed
	}
	return n, nil
}

// target tells whether s can stand in a request line.
func target(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return s != "" && s[0] == '/'
}
