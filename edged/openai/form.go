package openai

import (
	"bufio"
	"bytes"
	"mime"
	"net/http"
	"net/textproto"
	"strings"
)

// partsMax bounds the parts of a form that are looked at.
const partsMax = 1000

// boundaryOf is the boundary of a multipart form; "" if the body is none.
func boundaryOf(h http.Header) string {
	kind, params, err := mime.ParseMediaType(first(h["Content-Type"]))
	if err != nil || kind != "multipart/form-data" {
		return ""
	}
	return params["boundary"]
}

// readForm finds the model in a multipart form: files are uploaded so. The body is kept as it is but for the model's
// field; of several the last counts, and all are replaced.
func (x *exchange) readForm(boundary string) *failure {
	x.form, x.scan.open, x.scan.members, x.scan.text = true, 0, x.scan.members[:0], tally{}
	value := []byte(nil)
	for p, ok := nextPart(x.body, 0, boundary); ok; p, ok = nextPart(x.body, p.to, boundary) {
		if p.name != "model" {
			continue
		}
		if len(x.scan.members) == partsMax {
			return &failure{kind: kindMalformed, param: "model", message: "The form names the model too often."}
		}
		value = x.body[p.from:p.to]
		x.scan.members = append(x.scan.members, member{key: keyModel, from: p.from, to: p.to})
	}
	if value == nil {
		return &failure{kind: kindMalformed, param: "model", message: "The form must have a field \"model\". GET /v1/models lists the models there are."}
	}
	x.name, x.plainName, x.streams = string(value), true, false
	if x.model = x.catalog.find(x.name); x.model == nil {
		if f := x.catalog.noDirect(x.name); f != nil {
			return f
		}
		return noModel(x.name)
	}
	if !x.catalog.may(x.who, x.model) {
		return noModel(x.model.name)
	}
	x.name = x.model.name
	return nil
}

// formPart is a field of a form: its value is body[from:to]. A file has no name here.
type formPart struct {
	name     string
	from, to int
}

// nextPart finds the part that begins at or behind a place (RFC 2046 5.1.1).
func nextPart(body []byte, at int, boundary string) (p formPart, ok bool) {
	_, at, last := delimiter(body, at, boundary)
	if at < 0 || last {
		return p, false
	}
	n := bytes.Index(body[at:], []byte("\r\n\r\n"))
	if n < 0 {
		return p, false
	}
	head := body[at : at+n+4]
	p.from = at + n + 4
	end, next, _ := delimiter(body, p.from-2, boundary) // an empty field has its line end from its head
	if next < 0 {
		return p, false
	}
	p.to, p.name = max(end, p.from), fieldName(head)
	return p, true
}

// delimiter finds the next line that parts a form from a place on: where it begins, its line end included, and what
// follows it; -1 if there is none. last = nothing follows.
func delimiter(body []byte, at int, boundary string) (from, behind int, last bool) {
	mark := []byte("--" + boundary)
	for {
		i := bytes.Index(body[at:], mark)
		if i < 0 {
			return -1, -1, false
		}
		from, at = at+i, at+i+len(mark)
		if from > 0 && (from < 2 || body[from-2] != '\r' || body[from-1] != '\n') {
			continue
		}
		if bytes.HasPrefix(body[at:], []byte("--")) {
			return max(from-2, 0), at + 2, true
		}
		rest := bytes.TrimLeft(body[at:], " \t")
		if bytes.HasPrefix(rest, []byte("\r\n")) {
			return max(from-2, 0), len(body) - len(rest) + 2, false
		}
	}
}

func fieldName(head []byte) string {
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(head))).ReadMIMEHeader()
	if err != nil {
		return ""
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	if err != nil || !strings.EqualFold(kind, "form-data") {
		return ""
	}
	if _, file := params["filename"]; file {
		return ""
	}
	return params["name"]
}
