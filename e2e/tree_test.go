package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// goFile is a Go file of the repository, whatever system it is for.
type goFile struct {
	path    string // from the root, with slashes
	room    string // its directory
	isTest  bool
	written bool // by hand, not generated
	imports []string
	syntax  *ast.File
}

const root = ".."

// tree parses every Go file of the module.
func tree(t *testing.T) []goFile {
	t.Helper()
	var out []goFile
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f := goFile{path: filepath.ToSlash(rel), isTest: strings.HasSuffix(name, "_test.go"), written: !ast.IsGenerated(syntax), syntax: syntax}
		f.room = path.Dir(f.path)
		for _, i := range syntax.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, p)
		}
		out = append(out, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found %d Go files only; is the test run from its own directory?", len(out))
	}
	return out
}

// topLevel is what may stand at the top of the repository beside files and what .gitignore names.
var topLevel = []string{"cli", "configs", "docs", "e2e", "edged", "fsm", "noded", "proto", "storage"}

func TestTopLevelIsFixed(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		ignored := e.Name() == "bin" || e.Name() == "data"
		if e.IsDir() && !ignored && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("%s/ stands at the top level, which has %s. Put it into the room that it serves", e.Name(), strings.Join(topLevel, ", "))
		}
	}
}

func TestRoomsAreNamedByTheirSubject(t *testing.T) {
	drawers := []string{"util", "utils", "common", "helper", "helpers", "type", "types", "misc", "base", "shared", "lib", "internal", "pkg"}
	for _, f := range tree(t) {
		for _, part := range strings.Split(f.room, "/") {
			if slices.Contains(drawers, part) {
				t.Errorf("%s is in a drawer, not a room. Name the room by its subject, or put the file into the one whose noun it is", f.path)
			}
		}
	}
}

func TestEveryRoomSaysWhatItIsFor(t *testing.T) {
	comments := map[string][]string{}
	for _, f := range tree(t) {
		if f.isTest {
			continue
		}
		if doc := f.syntax.Doc.Text(); f.written && doc != "" {
			comments[f.room] = append(comments[f.room], doc)
		} else if comments[f.room] == nil {
			comments[f.room] = []string{}
		}
	}
	for room, docs := range comments {
		begin := "Package " + path.Base(room) + " "
		if strings.Contains(room, "/cmd/") {
			begin = "Command " + path.Base(room) + " "
		}
		if len(docs) != 1 || !strings.HasPrefix(docs[0], begin) {
			t.Errorf("%s has %d package comments; it needs one that begins with %q and says purpose, who calls it, what it never does, where to look next",
				room, len(docs), begin)
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, f := range tree(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.written && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function. Make it a constructor that main or the parent calls", f.path)
			}
		}
	}
}
