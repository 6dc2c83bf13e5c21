package cli

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestReference holds docs/CLI.md to the tree of commands. -update (make docs) writes it.
func TestReference(t *testing.T) {
	file := filepath.Join("..", "docs", "CLI.md")
	got := reference(t)
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the commands say of themselves: make docs (%v)", file, err)
	}
}

// book is a text in the making.
type book struct {
	strings.Builder
	fields map[string]map[string]string // comments on fields, by type and field
	types  []reflect.Type               // to be described, in the order in which they were named
}

func (b *book) line(format string, args ...any) { fmt.Fprintf(&b.Builder, format+"\n", args...) }

func reference(t *testing.T) string {
	b := &book{fields: comments(t, ".", filepath.Join("..", "edged", "adminapi"), filepath.Join("..", "configs"))}
	root := tree()
	b.line("# iopctl\n")
	b.line("<!-- Generated from the commands by `make docs`; a test holds it to them. -->\n")
	b.line("%s\n", root.Long)
	b.line("```\n%s\n```\n", root.Example)
	b.line("## Options that all commands have\n")
	b.flags(root.PersistentFlags())
	b.line(`## Output

Tables are for people: on a terminal with colours (--no-color, NO_COLOR), in wide with more columns. JSON is for programs: keys are
snake_case and stay, new ones may come; lists are never null; times are RFC 3339, durations integers of milliseconds. YAML is the same.
What went wrong goes to standard error as text, whatever -o says, with a cure where there is one; standard output then has nothing, or what
was found before (a report that was refused, a wait that was too short). Long waits show their progress on standard error if that is a
terminal, and nothing in a pipe.
`)
	b.line("## Exit codes\n")
	b.line("| code | of | when |\n|---|---|---|")
	for _, x := range exits() {
		b.line("| %d | %s | %s |", x.code, cmp.Or(x.of, "all"), x.text)
	}
	b.line(`
## Completion

    source <(iopctl completion bash)                       # bash, with the package bash-completion
    source <(iopctl completion zsh)                        # zsh, after compinit
    iopctl completion fish | source                        # fish
    iopctl completion powershell | Out-String | Invoke-Expression

It knows the ids that there are now: of providers, nodes, models, leases, requests, replicas. It waits for an edge for a second at most, and
says nothing if none answers. 'iopctl completion SHELL --help' tells how to have it in every shell.
`)
	b.line("## Commands\n")
	b.line("| command | does |\n|---|---|")
	all := leaves(root)
	for _, c := range all {
		b.line("| [`%s`](#%s) | %s |", pathOf(c), anchor(c.CommandPath()), c.Short)
	}
	b.line("")
	for _, c := range all {
		b.command(c)
	}
	b.line("## JSON\n")
	for i := 0; i < len(b.types); i++ {
		b.shape(b.types[i])
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

func (b *book) command(c *cobra.Command) {
	b.line("### %s\n", c.CommandPath())
	b.line("%s\n", cmp.Or(c.Long, c.Short+"."))
	b.line("```\n%s\n```\n", c.UseLine())
	if c.Example != "" {
		b.line("```\n%s\n```\n", c.Example)
	}
	b.flags(c.LocalNonPersistentFlags())
	path := pathOf(c)
	if x := jsonShapes()[path]; x != nil {
		b.line("JSON: %s.%s\n", b.kind(reflect.TypeOf(x).Elem()), b.second(path))
	} else {
		b.line("It prints %s.\n", shapeless()[path])
	}
}

func (b *book) second(path string) string {
	for _, key := range slices.Sorted(maps.Keys(jsonShapes())) {
		if rest, ok := strings.CutPrefix(key, path+" ("); ok {
			return fmt.Sprintf(" %s: %s.", strings.ToUpper(rest[:1])+strings.TrimSuffix(rest[1:], ")"), b.kind(reflect.TypeOf(jsonShapes()[key]).Elem()))
		}
	}
	return ""
}

func (b *book) flags(f *pflag.FlagSet) {
	any := false
	f.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !any {
			b.line("| option | meaning |\n|---|---|")
		}
		any = true
		kind, text := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if kind != "" {
			name += " " + kind
		}
		if d := f.DefValue; d != "" && d != "0" && d != "false" && d != "[]" && d != "0s" {
			text += " (default " + d + ")"
		}
		b.line("| %s` | %s |", name, markdown(text))
	})
	if any {
		b.line("")
	}
}

// markdown is a text in a cell of Markdown.
func markdown(text string) string {
	return strings.NewReplacer("\n", " ", "|", "\\|").Replace(strings.TrimSpace(text))
}

// kind says what a value is in JSON, and notes the types that have to be described.
func (b *book) kind(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage]():
		return "any JSON"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.kind(t.Elem()) + " or null"
	case reflect.Slice:
		return "list of " + b.kind(t.Elem())
	case reflect.Map:
		return "object of " + b.kind(t.Elem()) + " by name"
	case reflect.Struct:
		if !slices.Contains(b.types, t) {
			b.types = append(b.types, t)
		}
		return fmt.Sprintf("[%s](#%s)", t.Name(), anchor("json "+t.Name()))
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Interface:
		return "any JSON"
	}
	return "number"
}

func (b *book) shape(t reflect.Type) {
	b.line("### JSON %s\n", t.Name())
	b.line("| key | value | |\n|---|---|---|")
	b.keys(t)
	b.line("")
}

func (b *book) keys(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			b.keys(inner)
			continue
		case name == "-" || !f.IsExported():
			continue
		}
		text := b.fields[t.Name()][f.Name]
		if strings.Contains(options, "omitempty") {
			text = strings.TrimSpace("left out if empty; " + text)
			text = strings.TrimSuffix(text, ";")
		}
		b.line("| `%s` | %s | %s |", cmp.Or(name, f.Name), b.kind(f.Type), markdown(text))
	}
}

// comments are those on the fields of the types in the directories.
func comments(t *testing.T, dirs ...string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if s, ok := spec.Type.(*ast.StructType); ok && out[spec.Name.Name] == nil {
						out[spec.Name.Name] = fieldComments(s)
					}
				}
				return true
			})
		}
	}
	return out
}

func fieldComments(s *ast.StructType) map[string]string {
	out := map[string]string{}
	for _, f := range s.Fields.List {
		text := strings.TrimSpace(f.Comment.Text())
		if text == "" {
			text = strings.TrimSpace(f.Doc.Text())
		}
		for _, name := range f.Names {
			out[name.Name] = text
		}
	}
	return out
}
