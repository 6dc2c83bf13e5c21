package enroll

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// readOld gives the node file that is there, "" if there is none.
func readOld(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look at the node file: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("the node file %s is no regular file: name another one", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the node file that is there: %w", err)
	}
	return string(data), nil
}

// write writes the node file, the authority's file if one is needed, and keeps what was there before.
func write(path string, w *welcome, token, old string) (*Result, error) {
	r := &Result{Node: w.Node, Edges: w.Edges, Config: path, ClientCert: w.ClientCert}
	if w.CA != "" {
		ca, err := filepath.Abs(strings.TrimSuffix(path, filepath.Ext(path)) + "-ca.pem")
		if err != nil {
			return nil, fmt.Errorf("name the authority's file: %w", err)
		}
		if err := replace(ca, []byte(w.CA)); err != nil {
			return nil, err
		}
		r.CA = ca
	}
	if old != "" {
		r.Old = path + ".old"
		if err := replace(r.Old, []byte(old)); err != nil {
			return nil, err
		}
	}
	return r, replace(path, []byte(text(w, r, token)+block(old, "commands")+block(old, "env")))
}

// text is the node file.
func text(w *welcome, r *Result, token string) string {
	var b strings.Builder
	b.WriteString("# Written by noded join. All else comes from the edges.\nnode:\n")
	fmt.Fprintf(&b, "  id: %s\n  token: %s\n  edges:\n", quote(w.Node), quote(token))
	for _, e := range w.Edges {
		fmt.Fprintf(&b, "    - %s\n", quote(e))
	}
	switch {
	case w.TLS:
		b.WriteString("  tls:\n    enabled: true\n")
		if r.CA != "" {
			fmt.Fprintf(&b, "    ca: %s\n", quote(r.CA))
		}
	case w.Plaintext:
		b.WriteString("  plaintext: true   # as edge.link.plaintext of the edge says\n")
	}
	return b.String()
}

// quote writes a text as YAML: a JSON string is one.
func quote(s string) string { return strconv.Quote(s) }

// block gives a top-level key of a YAML file with all below it, as it stands there; "" if there is none. So the keys of
// backends, the programs that may be started, and comments among them, outlive a new token.
func block(file, key string) string {
	var b strings.Builder
	within := false
	for _, line := range strings.SplitAfter(file, "\n") {
		top := line != "" && (!strings.ContainsAny(line[:1], " \t#\r\n-") || strings.HasPrefix(line, "---")) // a list may stand at its key's own column
		if top {
			within = strings.HasPrefix(line, key+":")
		}
		if within {
			b.WriteString(line)
		}
	}
	if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteString("\n")
	}
	return b.String()
}

// replace writes a file that only this user can read, whole or not at all.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".iop-*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what is left of it says less than the error
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
