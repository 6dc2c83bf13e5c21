package fsm_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPurity holds the machine to its promise (docs/SEMANTICS.md 1.2): no I/O, clock, goroutine, randomness, float, dependence
// on map order or package variable. What it finds, it names with the cure.
func TestPurity(t *testing.T) {
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, n := range names {
		if strings.HasSuffix(n.Name(), ".go") && !strings.HasSuffix(n.Name(), "_test.go") {
			data, err := os.ReadFile(n.Name())
			if err != nil {
				t.Fatal(err)
			}
			sources[n.Name()] = string(data)
		}
	}
	if len(sources) < 10 {
		t.Fatalf("only %d sources: is this the folder of the machine?", len(sources))
	}
	for _, found := range impurities(t, newChecker(), sources) {
		t.Error(found)
	}
}

// TestPurityFindsWhatItForbids: the test above can fail.
func TestPurityFindsWhatItForbids(t *testing.T) {
	checker := newChecker()
	for source, want := range map[string]string{
		`import "time"; var _ = time.Now`:                                      "imports time",
		`import "math/rand/v2"; func f() int { return rand.Int() }`:            "imports math/rand/v2",
		`import "sync"; type t struct{ sync.Mutex }`:                           "imports sync",
		`import "github.com/google/go-cmp/cmp"; var _ = cmp.Equal`:             "imports github.com/google/go-cmp/cmp",
		`func f() { go f() }`:                                                  "starts a goroutine",
		`func f(c chan int) { <-c }`:                                           "channel",
		`func f(n int) int { return int(float64(n) / 3) }`:                     "float",
		`func f(n int) int { x := 0.5; _ = x; return n }`:                      "float",
		`type t struct { ratio float32 }`:                                      "float",
		`var count int`:                                                        "package variable count",
		`var table = map[string]int{"a": 1}`:                                   "package variable table",
		`var names = []string{"a"}`:                                            "package variable names",
		`func f(m map[int]int) (s int) { for k := range m { s = k }; return }`: "ranges over a map",

		`import "maps"; func f(m map[int]int) (s int) { for k := range maps.Keys(m) { s = k }; return }`: "maps.Keys",
		`import "fmt"; func f() { fmt.Println(1) }`:                                                      "fmt.Println",

		`func f() { println(1) }`: "println",

		`import "fmt"; func f(p *int) string { return fmt.Sprintf("%p", p) }`: "%p",
		`func init() {}`: "init",
	} {
		found := strings.Join(impurities(t, checker, map[string]string{"x.go": "package fsm\n" + source}), "\n")
		if !strings.Contains(found, want) {
			t.Errorf("%s: found %q, want %q", source, found, want)
		}
	}
	pure := `
import ("errors"; "maps"; "slices"; "cmp")
var ErrX = errors.New("x")
var names = [...]string{"a", "b"}
const c = 3
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
func f(m map[string]int) (n int) { for _, k := range sortedKeys(m) { n += m[k] }; for i := range 3 { n += i }; return }
`
	if found := impurities(t, checker, map[string]string{"x.go": "package fsm\n" + pure}); len(found) > 0 {
		t.Errorf("pure source: %q", found)
	}
}

// allowedImports are of the standard library, and can't tell the time, wait, or depend on the machine they run on.
func allowedImports() []string {
	return []string{
		"bytes", "cmp", "container/heap", "crypto/sha256", "encoding/binary", "errors", "fmt", "hash", "maps", "math/bits",
		"slices", "sort", "strconv", "strings",
	}
}

type checker struct {
	fset     *token.FileSet
	importer types.Importer
}

func newChecker() *checker {
	fset := token.NewFileSet()
	return &checker{fset, importer.ForCompiler(fset, "source", nil)}
}

// impurities parses and types the sources as one package and returns what it must not have.
func impurities(t *testing.T, c *checker, sources map[string]string) []string {
	t.Helper()
	p := &purity{checker: c, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}}
	var files []*ast.File
	for _, name := range sortedNames(sources) {
		f, err := parser.ParseFile(c.fset, name, sources[name], 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		p.imports(f)
	}
	if len(p.found) > 0 {
		return p.found // what may not be imported need not be typed
	}
	conf := types.Config{Importer: c.importer}
	if _, err := conf.Check("iop/fsm", c.fset, files, p.info); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		p.file(f)
	}
	return p.found
}

func sortedNames(m map[string]string) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

type purity struct {
	*checker
	info  *types.Info
	found []string
}

func (p *purity) bad(at ast.Node, format string, args ...any) {
	p.found = append(p.found, fmt.Sprintf("%v: %s", p.fset.Position(at.Pos()), fmt.Sprintf(format, args...)))
}

func (p *purity) imports(f *ast.File) {
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if !slices.Contains(allowedImports(), path) {
			p.bad(i, "imports %s: hand the value in with the entry (time, randomness) or return it as an effect (I/O); "+
				"a harmless package of the standard library may be added to allowedImports", path)
		}
	}
}

func (p *purity) file(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				p.vars(d)
			}
			p.walk(d, false)
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				p.bad(d, "has an init: build it in New")
			}
			p.walk(d, d.Name.Name == "sortedKeys")
		}
	}
}

// vars allows errors.New sentinels and arrays of strings.
func (p *purity) vars(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			ok := name.Name == "_"
			if i < len(v.Values) {
				ok = ok || p.isSentinel(v.Values[i]) || p.isTable(v.Values[i])
			}
			if !ok {
				p.bad(name, "package variable %s: make it a field of Machine, a constant, or an array of names", name.Name)
			}
		}
	}
}

func (p *purity) isSentinel(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	return ok && p.function(call.Fun) == "errors.New"
}

func (p *purity) isTable(x ast.Expr) bool {
	a, ok := p.info.TypeOf(x).(*types.Array)
	return ok && a.Elem() == types.Typ[types.String]
}

// function names what a call calls: package.name.
func (p *purity) function(x ast.Expr) string {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if obj := p.info.Uses[sel.Sel]; obj != nil && obj.Pkg() != nil {
		return obj.Pkg().Path() + "." + obj.Name()
	}
	return ""
}

func (p *purity) walk(n ast.Node, mayRange bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			p.bad(n, "starts a goroutine: the machine is called by one, and calls none")
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			p.bad(n, "uses a channel: return an effect")
		case *ast.RangeStmt:
			if _, isMap := p.info.TypeOf(n.X).Underlying().(*types.Map); isMap && !mayRange {
				p.bad(n, "ranges over a map: its order differs from replica to replica; range over sortedKeys(m)")
			}
		case *ast.CallExpr:
			p.call(n)
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, "%p") {
				p.bad(n, "formats %%p: an address differs from replica to replica")
			}
		case *ast.SelectorExpr:
			p.mapOrder(n, mayRange)
		}
		if x, ok := n.(ast.Expr); ok {
			p.float(x)
		}
		return true
	})
}

func (p *purity) call(n *ast.CallExpr) {
	if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "println" || id.Name == "print") && p.info.Types[n.Fun].IsBuiltin() {
		p.bad(n, "calls %s: the machine never logs", id.Name)
	}
	for _, prefix := range []string{"fmt.Print", "fmt.Fprint", "fmt.Scan", "fmt.Fscan"} {
		if name := p.function(n.Fun); strings.HasPrefix(name, prefix) {
			p.bad(n, "calls %s: the machine never does I/O; return an outcome or an effect", name)
		}
	}
}

// mapOrder: what gives the keys or values of a map in its order belongs behind a sort.
func (p *purity) mapOrder(n *ast.SelectorExpr, mayRange bool) {
	name := p.function(n)
	if !strings.HasPrefix(name, "maps.") || mayRange || name == "maps.Clone" || name == "maps.Copy" || name == "maps.DeleteFunc" {
		return
	}
	if p.sorted(n) {
		return
	}
	p.bad(n, "uses %s outside sortedKeys: its order differs from replica to replica; use sortedKeys(m) or sort at once "+
		"with slices.SortedFunc", name)
}

// sorted tells whether maps.Keys(m) or the like stands as the first argument of slices.Sorted or slices.SortedFunc.
func (p *purity) sorted(n *ast.SelectorExpr) bool {
	for x := range p.info.Types {
		outer, ok := x.(*ast.CallExpr)
		if !ok || len(outer.Args) == 0 {
			continue
		}
		inner, ok := outer.Args[0].(*ast.CallExpr)
		if ok && inner.Fun == n && slices.Contains([]string{"slices.Sorted", "slices.SortedFunc"}, p.function(outer.Fun)) {
			return true
		}
	}
	return false
}

func (p *purity) float(x ast.Expr) {
	typ := p.info.TypeOf(x)
	if typ == nil {
		return
	}
	b, ok := typ.Underlying().(*types.Basic)
	if ok && b.Info()&(types.IsFloat|types.IsComplex) != 0 {
		p.bad(x, "is a float: its rounding differs from one architecture to another; count in integers of a smaller unit")
	}
}
