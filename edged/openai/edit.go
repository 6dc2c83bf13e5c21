package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// param is one entry of a model's generation policy.
type param struct {
	key    key
	name   string
	value  string // JSON
	capped bool   // the value is also the most that a client may ask for
	limit  float64
}

// edit replaces body[from:to] by text.
type edit struct {
	from, to int
	text     string // JSON; unused for the model
	model    bool   // the text is the served name
}

// plan notes what of the body must change for the model's policy: all places of the model's name, and what the policy
// adds or caps. The edits are in the order of the body.
func (x *exchange) plan() {
	x.edits, x.added, x.hides = x.edits[:0], x.added[:0], false
	policy := x.model.policy
	switch {
	case x.route.embeds:
		policy = nil
	case x.route.messages:
		policy = messagesPolicy(policy)
	}
	asks, asked := x.asksUsage(), false
	for _, m := range x.scan.members {
		if m.key == keyModel {
			x.edits = append(x.edits, edit{from: m.from, to: m.to, model: true})
			continue
		}
		if m.key == keyStreamOptions && asks {
			asked = true
			x.askUsage(m)
			continue
		}
		for i := range policy {
			if p := &policy[i]; p.governs(m.key) {
				x.edits = p.limitTo(x.edits, x.body, m)
			}
		}
	}
	for i := range policy {
		if !x.states(&policy[i]) {
			x.added = append(x.added, &policy[i])
		}
	}
	if asks && !asked {
		x.hides = true
		x.added = append(x.added, &param{name: "stream_options", value: wantUsage})
	}
}

// messagesPolicy is what of a policy Anthropic's API has words for.
func messagesPolicy(policy []param) (kept []param) {
	for _, p := range policy {
		switch p.key {
		case keyMaxTokens, keyTemperature, keyTopP, keyTopK:
			kept = append(kept, p)
		}
	}
	return kept
}

// governs tells whether a cap is meant for a key: max_tokens is called max_completion_tokens by newer clients.
func (p *param) governs(k key) bool {
	return p.key == k || p.key == keyMaxTokens && k == keyMaxCompletion
}

// states tells whether the body says something about what the policy sets. null says nothing, and is replaced if it is
// the policy's own key.
func (x *exchange) states(p *param) bool {
	for _, m := range x.scan.members {
		if m.key == p.key || p.governs(m.key) && string(x.body[m.from:m.to]) != "null" {
			return true
		}
	}
	return false
}

// limitTo adds the edit that a member needs, if any.
func (p *param) limitTo(edits []edit, body []byte, m member) []edit {
	value := body[m.from:m.to]
	if string(value) == "null" {
		if p.key == m.key {
			edits = append(edits, edit{from: m.from, to: m.to, text: p.value})
		}
		return edits
	}
	if !p.capped {
		return edits
	}
	// Some backends read a number in quotes as that number, and one below 0 as no limit at all.
	if n, _ := strconv.ParseFloat(string(bytes.Trim(value, `"`)), 64); n > p.limit || n < 0 {
		edits = append(edits, edit{from: m.from, to: m.to, text: p.value})
	}
	return edits
}

// bodyFor is the body as a provider is to get it. It is valid until the next call.
func (x *exchange) bodyFor(served string) []byte {
	if len(x.edits) == 1 && len(x.added) == 0 && x.name == served && x.plainName {
		return x.body
	}
	out := append(x.rewritten[:0], x.body[:x.scan.open]...)
	for _, p := range x.added {
		out = append(append(append(append(out, '"'), p.name...), '"', ':'), p.value...)
		out = append(out, ',')
	}
	at := x.scan.open
	for _, e := range x.edits {
		out = append(out, x.body[at:e.from]...)
		if e.model && x.form {
			out = append(out, served...)
		} else if e.model {
			out = appendQuoted(out, served)
		} else {
			out = append(out, e.text...)
		}
		at = e.to
	}
	out = append(out, x.body[at:]...)
	x.rewritten = out
	return out
}

// appendQuoted appends s as a JSON string.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		i++
	}
	return append(b, '"')
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

// unquote is the text of a valid JSON string.
func unquote(quoted []byte) string {
	var s string
	_ = json.Unmarshal(quoted, &s)
	return s
}
