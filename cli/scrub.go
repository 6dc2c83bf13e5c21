package cli

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// scrubber takes out what looks like a secret. What it gets should have none; this is the second lock of that door.
type scrubber struct {
	known   [][]byte // secrets that this process knows
	shapes  []shape
	removed map[string]int
}

func newScrubber(g *globals) *scrubber {
	s := &scrubber{shapes: shapes(), removed: map[string]int{}}
	for _, secret := range []string{g.token, g.lookup("IOP_TOKEN")} {
		if secret != "" {
			s.known = append(s.known, []byte(secret))
		}
	}
	return s
}

// gone stands in place of a secret.
const gone = "[removed]"

// shape is what secrets of a kind look like.
type shape struct {
	kind string
	form *regexp.Regexp
	keep func(found []byte) bool // not one after all; nil = it always is
}

func shapes() []shape {
	return []shape{
		{"iop token", regexp.MustCompile(`iop_[A-Za-z0-9_-]{24,}`), isMetricName},
		{"bearer", regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{6,}`), nil},
		{"api key", regexp.MustCompile(`\b(?:sk|pk|hf|gsk|xai|ghp|AIza)[-_][A-Za-z0-9_-]{12,}`), nil},
		{"url password", regexp.MustCompile(`://[^/\s:@"]+:[^/\s@"]+@`), nil},
		{"private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----`), nil},
	}
}

// isMetricName tells a metric of ours from a token, which is random: it has digits or capitals.
func isMetricName(found []byte) bool {
	return !bytes.ContainsAny(found, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// text takes what looks like a secret out of any text.
func (s *scrubber) text(in []byte) []byte {
	for _, secret := range s.known {
		if n := bytes.Count(in, secret); n > 0 {
			s.removed["admin token"] += n
			in = bytes.ReplaceAll(in, secret, []byte(gone))
		}
	}
	for _, x := range s.shapes {
		in = x.form.ReplaceAllFunc(in, func(found []byte) []byte {
			if x.keep != nil && x.keep(found) {
				return found
			}
			s.removed[x.kind]++
			return []byte(gone)
		})
	}
	return in
}

// file takes them out of a file; of JSON also what stands under the name of a secret.
func (s *scrubber) file(name string, in []byte) []byte {
	if strings.HasSuffix(name, ".json") {
		d := json.NewDecoder(bytes.NewReader(in))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			if text, err := jsonText(s.value("", v)); err == nil {
				in = text
			}
		}
	}
	return s.text(in)
}

// secretName is the end of the name of what nobody else is to see. Numbers of tokens are none: only texts are taken out.
var secretName = regexp.MustCompile(`(?i)(^|_)(token|token_hash_sha256|token_hash|secret|password|passwd|api_key|authorization|cookie|private_key|prompt|messages|content|input)$`)

// value walks a JSON value.
func (s *scrubber) value(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = s.value(k, x)
		}
	case []any:
		for i, x := range v {
			v[i] = s.value(name, x)
		}
	case string:
		if v != "" && secretName.MatchString(name) {
			s.removed[strings.ToLower(name)]++
			return gone
		}
	}
	return v
}
