package configs

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	yamlLine = regexp.MustCompile(`^line (\d+): `)
	// countsFromZero has the errors whose line the YAML parser counts from 0; it counts all others from 1.
	countsFromZero = regexp.MustCompile(`^did not find expected ('-' indicator|key|',' or '[\]}]'|node content|<)`)
	// bareReference finds ${NAME} without quotes in a flow, where its braces are taken for YAML's.
	bareReference = regexp.MustCompile(`[{\[].*[:,\[]\s*\$\{`)
)

// syntaxCures are cures by the beginning of the YAML parser's words.
var syntaxCures = []struct{ begins, cure string }{
	{"found character that cannot start any token", "indent with spaces, not tabs; put text that begins with @, % or a backtick in quotes"},
	{"mapping values are not allowed", "check the indentation at this line and the one above; put text that holds ': ' in quotes"},
	{"control characters are not allowed", "remove them: the file must be plain text"},
	{"unknown anchor", "aliases are not supported; put text that begins with * in quotes"},
}

// syntax reports an error of the YAML parser, whose text begins with the line.
func (r *report) syntax(err error, data []byte) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
		if countsFromZero.MatchString(text) { // it is then the line at which the block began that is broken
			line = brokenAt(data, line+1)
		}
	}
	cure := "check indentation, quotes and brackets at this line and the one above"
	if bareReference.Match(aroundLine(data, line)) {
		cure = `inside { } and [ ] put ${NAME} in quotes: "${NAME}"`
	}
	for _, c := range syntaxCures {
		if strings.HasPrefix(text, c.begins) {
			cure = c.cure
		}
	}
	if strings.HasPrefix(text, "unknown anchor") {
		text = "an alias (*) without its anchor" // its name may be a secret that begins with a star
	}
	r.problemAt("", line, "not valid YAML: "+text, cure)
}

// brokenWork bounds what brokenAt parses, in bytes.
const brokenWork = 4 << 20

// brokenAt finds the line, counted from 1, from which on the file is no beginning of a valid one any more. It is from or later.
func brokenAt(data []byte, from int) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	end, work := len(data), 0
	for n := len(lines); n > from; n-- {
		end -= len(lines[n-1])
		if work += end; work > brokenWork {
			break
		}
		var doc yaml.Node
		if err := yaml.NewDecoder(bytes.NewReader(data[:end])).Decode(&doc); err == nil || errors.Is(err, io.EOF) {
			return n
		}
	}
	return from
}

// aroundLine gives a line, counted from 1, and its neighbours; the parser notices some faults a line late.
func aroundLine(data []byte, line int) []byte {
	lines := bytes.SplitN(data, []byte("\n"), line+2)
	first, last := max(line-2, 0), min(line+1, len(lines))
	return bytes.Join(lines[min(first, last):last], []byte("\n"))
}
