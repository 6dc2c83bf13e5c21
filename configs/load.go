package configs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// FileMax is the largest file that is loaded, in bytes: room for some 30,000 providers.
const FileMax = 4 << 20

// Env looks a variable up, as os.LookupEnv does.
type Env = func(name string) (string, bool)

// LoadEdge reads and checks an edge file. env gives the variables for ${NAME}; nil has none. The error of a faulty file is a *Problems
// that names every fault at once.
func LoadEdge(path string, env Env) (*Edge, []Warning, error) {
	data, err := readFile(path, "edge")
	if err != nil {
		return nil, nil, err
	}
	return ParseEdge(data, path, env)
}

// ParseEdge is LoadEdge for a file's bytes; name stands for the file in messages.
func ParseEdge(data []byte, name string, env Env) (*Edge, []Warning, error) {
	e, r := NewEdge(), newReport()
	switch root := parseDocument(data, r); {
	case root == nil:
	case isFor(root, "node", "edge"):
		r.problem("", "this is a node's file", "start noded with it; an edge's file has edge: at its top (configs/examples/edge.yaml)")
	default:
		promoteLegacy(root, r)
		newDecoder(r, env, "edge").decode(root, e)
		e.normalise()
		e.check(r)
	}
	warnings, err := r.result(name)
	if err != nil {
		return nil, warnings, err
	}
	return e, warnings, nil
}

// LoadNode reads and checks a node file, as LoadEdge does an edge file.
func LoadNode(path string, env Env) (*Node, []Warning, error) {
	data, err := readFile(path, "node")
	if err != nil {
		return nil, nil, err
	}
	n, warnings, err := ParseNode(data, path, env)
	if private(path) {
		warnings = slices.DeleteFunc(warnings, func(w Warning) bool { return w.Path == nodeTokenPath })
	}
	return n, warnings, err
}

// private tells whether nobody but its owner may read a file.
func private(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o077 == 0
}

// ParseNode is LoadNode for a file's bytes; name stands for the file in messages.
func ParseNode(data []byte, name string, env Env) (*Node, []Warning, error) {
	n, r := NewNode(), newReport()
	switch root := parseDocument(data, r); {
	case root == nil:
	case isFor(root, "edge", "node"):
		r.problem("", "this is an edge's file", "start edged with it; a node's file has node: at its top (configs/examples/node.yaml)")
	default:
		newDecoder(r, env, "").decode(root, n)
		n.check(r)
	}
	warnings, err := r.result(name)
	if err != nil {
		return nil, warnings, err
	}
	return n, warnings, nil
}

// isFor tells whether a file is the other program's: it has that one's key at its top, and not the own one.
func isFor(root *yaml.Node, other, own string) bool {
	found := false
	for i := 0; root.Kind == yaml.MappingNode && i < len(root.Content); i += 2 {
		switch root.Content[i].Value {
		case own:
			return false
		case other:
			found = true
		}
	}
	return found
}

// readFile reads no more than FileMax+1 bytes, so that a device or a huge file cannot fill the memory.
func readFile(path, kind string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		cure := "check the path and that this user may read it"
		if errors.Is(err, os.ErrNotExist) {
			cure = fmt.Sprintf("check the path, or start from configs/examples/%s.yaml", kind)
		}
		return nil, &Problems{File: path, List: []Problem{{Cause: "cannot be opened: " + reason(err), Cure: cure}}}
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(f, FileMax+1))
	if err != nil {
		return nil, &Problems{File: path, List: []Problem{{Cause: "cannot be read: " + reason(err), Cure: "give the path of a file"}}}
	}
	return data, nil
}

// reason is the innermost cause of a file error, as the message names the path already.
func reason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
