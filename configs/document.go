package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseDocument gives the top mapping of a file that holds exactly one document, or nil after reporting why not.
func parseDocument(data []byte, r *report) *yaml.Node {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > FileMax:
		r.problem("", fmt.Sprintf("the file is larger than %d MiB", FileMax>>20), "check that it is a configuration file")
		return nil
	case !utf8.Valid(data):
		r.problemAt("", 1+bytes.Count(data[:invalidAt(data)], []byte("\n")), "the file is not UTF-8 text", "save it as UTF-8")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		r.syntax(err, data)
		return nil
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		r.problem("", "the file is empty", "start from the examples in configs/examples")
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		r.problemAt("", more.Line, "the file holds more than one YAML document", "remove the line '---' and what follows, or split the file")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err, data)
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		r.problemAt("", root.Line, "the file must hold keys with values, found "+describe(root, false), "start from the examples in configs/examples")
		return nil
	}
	return root
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(data)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// describe names what a node is. The value is shown only where it can be no secret, and only if it is short.
func describe(n *yaml.Node, show bool) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of keys"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	kind, value := "text", strconv.Quote(n.Value)
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		kind, value = "number", n.Value
	case "!!bool":
		kind, value = "truth value", n.Value
	}
	if !show || len(n.Value) > 40 {
		return "a " + kind
	}
	return "the " + kind + " " + value
}
