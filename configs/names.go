package configs

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// NameMax is the longest id of an edge, node, provider or adapter, and the longest token_ref, in bytes.
const NameMax = 128

// ModelIDMax is the longest model key in bytes.
const ModelIDMax = 256

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	hashPattern = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// checkName reports an id that would not do in paths, labels and logs. It does not show it: people mix up token and token_ref.
func checkName(r *report, path, name string) {
	if name == "" || r.failed(path) {
		return
	}
	if len(name) > NameMax || !namePattern.MatchString(name) {
		r.problem(path, "is not a name",
			fmt.Sprintf("use letters, digits and . _ - only, a letter or digit first, at most %d in all", NameMax))
	}
}

// checkText reports a name for people, or of a model, that holds what no name should.
func checkText(r *report, path, text string, bytesMax int) {
	if r.failed(path) {
		return
	}
	odd := strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) || c == unicode.ReplacementChar })
	if odd || strings.TrimSpace(text) != text {
		r.problem(path, "holds a control character, or a space at its start or end", "remove it")
	} else if len(text) > bytesMax {
		r.problem(path, fmt.Sprintf("is longer than %d bytes", bytesMax), "shorten it")
	}
}

// checkHash reports what is not a SHA-256. It never shows the value, which may be the token itself.
func checkHash(r *report, path, hash string) {
	if hash == "" || r.failed(path) || hashPattern.MatchString(hash) {
		return
	}
	r.problem(path, "is not a SHA-256 in 64 hex digits", "never write the token itself: 'iopctl tokens hash' gives its hash")
}

// uniques finds values that must not stand twice.
type uniques struct {
	report *report
	first  map[string]string // value: path
}

func newUniques(r *report) *uniques { return &uniques{r, map[string]string{}} }

// add reports a value that stood before; what names it in the message, and must not hold a secret.
func (u *uniques) add(path, value, what, cure string) {
	if value == "" {
		return
	}
	if first, ok := u.first[value]; ok {
		if !u.report.failed(path) {
			u.report.problem(path, fmt.Sprintf("%s stands twice, first at %s", what, u.where(first)), cure)
		}
		return
	}
	u.first[value] = path
}

func (u *uniques) where(path string) string {
	if line := u.report.line(path); line > 0 {
		return fmt.Sprintf("%s (line %d)", path, line)
	}
	return path
}
