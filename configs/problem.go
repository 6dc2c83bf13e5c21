package configs

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Problem is one fault of a file: where, what and how to mend it. It never holds a secret.
type Problem struct {
	Path  string `json:"path"` // as in nodes[0].providers[1].capacity; empty: the file as a whole
	Line  int    `json:"line"` // from 1; 0 = unknown
	Cause string `json:"cause"`
	Cure  string `json:"cure"`
}

// String gives the problem in one line, without the file's name.
func (p Problem) String() string {
	var b strings.Builder
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Cause)
	if p.Cure != "" {
		b.WriteString("; " + p.Cure)
	}
	return b.String()
}

// Problems is everything that is wrong with a file. It is the error of a failed load.
type Problems struct {
	File string
	List []Problem // by line, then path
}

// Error gives one line per problem, as file:line: path: cause; cure.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, x := range p.List {
		at := p.File
		if x.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.File, x.Line)
		}
		lines[i] = strings.TrimPrefix(at+": ", ": ") + x.String()
	}
	return strings.Join(lines, "\n")
}

// Warning is something that a file says and that is accepted, but likely not meant.
type Warning struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// String gives the warning in one line, without the file's name.
func (w Warning) String() string {
	if w.Path == "" {
		return w.Text
	}
	return w.Path + ": " + w.Text
}

// problemsMax bounds what one load reports; nobody reads further.
const problemsMax = 1000

// report collects what a load finds. Lines are those of the keys, by path; a path that the file does not have gets the
// line of its nearest parent.
type report struct {
	lines    map[string]int
	set      map[string]bool   // paths that the file gives a value
	expanded map[string]bool   // paths whose value came from the environment
	guessed  map[string]bool   // paths that an unknown key was probably meant to be
	moved    map[string]string // path in the schema: where the file says it, for legacy keys
	problems []Problem
	warnings []Warning
}

func newReport() *report {
	return &report{lines: map[string]int{}, set: map[string]bool{}, expanded: map[string]bool{}, guessed: map[string]bool{}, moved: map[string]string{}}
}

func (r *report) line(path string) int {
	for path != "" {
		if n, ok := r.lines[path]; ok {
			return n
		}
		path = parentPath(path)
	}
	return 0
}

func (r *report) problem(path, cause, cure string) { r.problemAt(path, r.line(path), cause, cure) }

func (r *report) problemAt(path string, line int, cause, cure string) {
	if from, ok := r.moved[path]; ok {
		path = from
	}
	if len(r.problems) < problemsMax {
		r.problems = append(r.problems, Problem{Path: path, Line: line, Cause: cause, Cure: cure})
	}
}

func (r *report) warn(path, text string) {
	r.warnings = append(r.warnings, Warning{Path: path, Line: r.line(path), Text: text})
}

// failedAt tells whether a problem is reported at the very path.
func (r *report) failedAt(path string) bool {
	return len(r.problems) == problemsMax || slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Path == path })
}

// failed tells whether a problem is reported at the path or below it, so that rules need not report it again.
func (r *report) failed(path string) bool {
	if len(r.problems) == problemsMax {
		return true // nothing more will be reported, so nothing more need be checked
	}
	for _, p := range r.problems {
		if p.Path == path || strings.HasPrefix(p.Path, path) && strings.ContainsRune(".[", rune(p.Path[len(path)])) {
			return true
		}
	}
	return false
}

// result gives the warnings and, if there are problems, the error, both in the file's order.
func (r *report) result(file string) ([]Warning, error) {
	sort.SliceStable(r.warnings, func(i, j int) bool { return r.warnings[i].Line < r.warnings[j].Line })
	if len(r.problems) == 0 {
		return r.warnings, nil
	}
	sort.SliceStable(r.problems, func(i, j int) bool {
		a, b := r.problems[i], r.problems[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Path < b.Path
	})
	return r.warnings, &Problems{File: file, List: r.problems}
}
