package anthropic

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// block is a piece of content, in a request.
type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Source   *source         `json:"source"`
	Title    string          `json:"title"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	CallID   string          `json:"tool_use_id"`
	Content  json.RawMessage `json:"content"`
	Failed   bool            `json:"is_error"`
	Thinking string          `json:"thinking"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// blocks reads content: a text is one block.
func blocks(raw json.RawMessage, at string) ([]block, *Problem) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		b := block{Type: "text"}
		if err := json.Unmarshal(raw, &b.Text); err != nil {
			return nil, unread(err)
		}
		return []block{b}, nil
	}
	var list []block
	if json.Unmarshal(raw, &list) != nil {
		return nil, &Problem{at, at + ": Input should be a text or a list of content blocks."}
	}
	return list, nil
}

// part is a piece of a chat message's content.
type part struct {
	Type  string    `json:"type"`
	Text  *string   `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
	File  *file     `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type file struct {
	Name string `json:"filename,omitempty"`
	Data string `json:"file_data"`
}

func textPart(s string) part { return part{Type: "text", Text: &s} }

// part makes a chat part of a block that a user or a tool says.
func (b *block) part(at string) (part, *Problem) {
	switch b.Type {
	case "text":
		return textPart(b.Text), nil
	case "image":
		if b.Source != nil && b.Source.Type == "base64" {
			return part{Type: "image_url", Image: &imageURL{"data:" + b.Source.MediaType + ";base64," + b.Source.Data}}, nil
		}
		if b.Source != nil && b.Source.Type == "url" {
			return part{Type: "image_url", Image: &imageURL{b.Source.URL}}, nil
		}
	case "document":
		if b.Source != nil && b.Source.Type == "text" {
			return textPart(b.Title + "\n" + b.Source.Data), nil
		}
		if b.Source != nil && b.Source.Type == "base64" {
			return part{Type: "file", File: &file{Name: b.Title, Data: "data:" + b.Source.MediaType + ";base64," + b.Source.Data}}, nil
		}
	}
	what := b.Type
	if b.Source != nil {
		what += " with a source of type " + b.Source.Type
	}
	return part{}, &Problem{at, at + ": the model's providers are asked in chat's words, which have none for " + strconv.Quote(what) +
		". Leave it out, or use a model whose providers have /v1/messages."}
}

// content is a chat message's content: a text as long as it is nothing but text.
func content(parts []part) any {
	if len(parts) == 0 {
		return ""
	}
	var text []byte
	for i, p := range parts {
		if p.Type != "text" {
			return parts
		}
		if i > 0 {
			text = append(text, '\n')
		}
		text = append(text, *p.Text...)
	}
	return string(text)
}
