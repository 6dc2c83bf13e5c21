package chat

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/url"
	"strings"
)

// Roles of a message.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleFunction  = "function"
)

func (q *Request) readMessages(f fields) {
	items, ok := f.list("messages")
	switch {
	case !ok:
		f.missing("messages")
	case len(items) == 0:
		f.refuse("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, raw := range items {
		if m, ok := f.asObject(item("messages", i), raw); ok {
			q.Messages = append(q.Messages, readMessage(m))
		}
		if *f.problem != nil {
			return
		}
	}
}

func readMessage(f fields) Message {
	m := Message{
		Role: f.oneOf("role", RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool, RoleFunction),
		Name: f.text("name"),
	}
	if m.Role == "" {
		f.missing(f.path("role"))
	}
	content, given := f.take("content")
	if given {
		m.readContent(f, content)
	}
	switch m.Role {
	case RoleAssistant:
		m.Refusal = f.text("refusal")
		m.Reasoning = f.text("reasoning_content")
		if s := f.text("reasoning"); m.Reasoning == "" {
			m.Reasoning = s
		}
		m.readToolCalls(f)
		given = given || len(m.ToolCalls) > 0 || m.Refusal != "" || f.raw["function_call"] != nil
	case RoleTool:
		m.ToolCallID = f.needed("tool_call_id")
	}
	if !given {
		f.refuse(f.path("content"), "invalid_type", "Invalid value for '%s': expected a string, got null.", f.path("content"))
	}
	return m
}

// readContent reads a text, or a list of parts.
func (m *Message) readContent(f fields, raw json.RawMessage) {
	at := f.path("content")
	switch raw[0] {
	case '"':
		m.Parts = []Part{{Kind: PartText, Text: f.asText(at, raw)}}
	case '[':
		items, _ := f.asList(at, raw)
		for i, raw := range items {
			if p, ok := f.asObject(item(at, i), raw); ok {
				m.readPart(p)
			}
		}
	default:
		f.mistyped(at, "a string or an array of objects", raw)
	}
}

// readPart reads one part. A refusal is no part of its own here.
func (m *Message) readPart(f fields) {
	p := Part{Kind: PartText}
	switch f.oneOf("type", "text", "image_url", "input_audio", "file", "refusal") {
	case "text":
		if raw, ok := f.take("text"); ok {
			p.Text = f.asText(f.path("text"), raw)
		} else {
			f.missing(f.path("text"))
		}
	case "image_url":
		p.readImage(f)
	case "input_audio":
		p.readAudio(f)
	case "file":
		p.readFile(f)
	case "refusal":
		m.Refusal += f.text("refusal")
		return
	default:
		f.missing(f.path("type"))
	}
	m.Parts = append(m.Parts, p)
}

// readImage reads image_url: an object with a url, or as some servers take it the url itself.
func (p *Part) readImage(f fields) {
	p.Kind = PartImage
	at, text := f.path("image_url"), ""
	raw, ok := f.take("image_url")
	switch {
	case !ok:
		f.missing(at)
		return
	case raw[0] == '"':
		text = f.asText(at, raw)
	default:
		if o, ok := f.asObject(at, raw); ok {
			at = o.path("url")
			text = o.needed("url")
		}
	}
	if strings.HasPrefix(text, "data:") {
		if p.MediaType, p.Data, ok = dataURL(text); !ok {
			f.refuse(at, "invalid_value", "Invalid '%s': the data: URL can't be read. Expected data:image/TYPE;base64,DATA.", at)
		}
		return
	}
	if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		f.refuse(at, "invalid_value", "Invalid '%s': expected a data: URL, or one with http or https.", at)
		return
	}
	p.URL = text
}

func (p *Part) readAudio(f fields) {
	p.Kind = PartAudio
	o, ok := f.object("input_audio")
	if !ok {
		f.missing(f.path("input_audio"))
		return
	}
	p.MediaType = "audio/" + o.oneOf("format", "wav", "mp3")
	data, err := base64.StdEncoding.DecodeString(o.needed("data"))
	if err != nil {
		o.refuse(o.path("data"), "invalid_value", "Invalid '%s': it is no base64.", o.path("data"))
	}
	p.Data = data
}

func (p *Part) readFile(f fields) {
	p.Kind = PartFile
	o, ok := f.object("file")
	if !ok {
		f.missing(f.path("file"))
		return
	}
	p.Text, p.URL = o.text("filename"), o.text("file_id")
	if data := o.text("file_data"); data != "" {
		if p.MediaType, p.Data, ok = dataURL(data); !ok {
			o.refuse(o.path("file_data"), "invalid_value", "Invalid '%s': expected data:TYPE;base64,DATA.", o.path("file_data"))
		}
	}
}

// dataURL takes a data: URL apart.
func dataURL(text string) (mediaType string, data []byte, ok bool) {
	kind, body, found := strings.Cut(strings.TrimPrefix(text, "data:"), ",")
	kind, packed := strings.CutSuffix(kind, ";base64")
	if !found || !packed {
		return "", nil, false
	}
	mediaType, _, err := mime.ParseMediaType(kind)
	if err != nil {
		mediaType = "application/octet-stream"
	}
	encoding := base64.StdEncoding
	if strings.ContainsAny(body, "-_") {
		encoding = base64.URLEncoding
	}
	if len(body)%4 != 0 {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	data, err = encoding.DecodeString(body)
	return mediaType, data, err == nil && len(data) > 0
}
