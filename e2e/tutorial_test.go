//go:build !windows

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

const tutorialFile = "../docs/TUTORIAL.md"

// TestTutorial types docs/TUTORIAL.md, from its first block to its last, into one shell, and compares what is printed with
// what the tutorial shows. What a block is, its first line says:
//
//	```yaml NAME     the content of a file of that name
//	```sh            is typed, and must succeed; "exit=3" behind it: must end with that code
//	```sh until      is typed until it prints what is shown: a fact that comes by itself
//	```sh build      is not typed, because it needs the sources: the test has built the same programs
//	```text          what the block before it prints. A line "…" stands for any lines, "…" in a line for anything
//
// A … in a block that is typed stands for what followed the same letters in an output above: whoever reads copies it.
// Ports are exchanged for free ones, and llama-server is a stand-in with the same answers, as few machines have one.
// With -update the outputs that differ are written into the tutorial.
func TestTutorial(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(tutorialFile)
	if err != nil {
		t.Fatal(err)
	}
	blocks := guideBlocks(string(text))
	s := newGuideShell(t, string(text))
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.kind == "yaml" && b.word(1) != "":
			s.write(b.word(1), b.body)
		case b.kind == "sh" && !b.has("build"):
			s.follow(b)
		}
		if t.Failed() && !*update {
			break
		}
	}
	if *update {
		if err := os.WriteFile(tutorialFile, []byte(guideText(string(text), blocks)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// guideBlock is a fenced block of a guide.
type guideBlock struct {
	line   int // of its fence, from 1
	kind   string
	info   string
	body   string
	output *guideBlock // of a block that is typed: what it prints, if that is shown
	fresh  string      // of an output: what was printed instead
	update bool
}

func (b *guideBlock) word(i int) string {
	if f := strings.Fields(b.info); i < len(f) {
		return f[i]
	}
	return ""
}

func (b *guideBlock) has(flag string) bool { return strings.Contains(" "+b.info+" ", " "+flag+" ") }

// code is the exit code that the block must have.
func (b *guideBlock) code() string {
	for _, f := range strings.Fields(b.info) {
		if c, ok := strings.CutPrefix(f, "exit="); ok {
			return c
		}
	}
	return "0"
}

// guideBlocks takes the fenced blocks out of a text.
func guideBlocks(text string) []guideBlock {
	lines := strings.Split(text, "\n")
	out := make([]guideBlock, 0, len(lines)) // never grown: outputs are pointed to
	between := true
	for i := 0; i < len(lines); i++ {
		info, fence := strings.CutPrefix(lines[i], "```")
		if !fence {
			between = between && strings.TrimSpace(lines[i]) == ""
			continue
		}
		b := guideBlock{line: i + 1, info: info}
		b.kind = b.word(0)
		for i++; i < len(lines) && lines[i] != "```"; i++ {
			b.body += lines[i] + "\n"
		}
		out = append(out, b)
		if n := len(out); n > 1 && between && b.kind == "text" && out[n-2].kind == "sh" {
			out[n-2].output = &out[n-1]
		}
		between = true
	}
	return out
}

// guideText is the text with the outputs that were printed.
func guideText(text string, blocks []guideBlock) string {
	lines := strings.Split(text, "\n")
	for i := len(blocks) - 1; i >= 0; i-- {
		if b := &blocks[i]; b.update {
			old := strings.Count(b.body, "\n")
			fresh := strings.Split(strings.TrimSuffix(b.fresh, "\n"), "\n")
			lines = append(lines[:b.line:b.line], append(fresh, lines[b.line+old:]...)...)
		}
	}
	return strings.Join(lines, "\n")
}

var guidePort = regexp.MustCompile(`:(\d{4,5})\b`)

// guidePorts exchanges the ports of a text for free ones, there and back.
func guidePorts(t *testing.T, text string) (there, back *strings.Replacer) {
	t.Helper()
	var to, from []string
	seen := map[string]bool{}
	for _, m := range guidePort.FindAllStringSubmatch(text, -1) {
		if port := m[1]; !seen[port] {
			seen[port] = true
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }() // all are held until the last is chosen
			_, free, _ := net.SplitHostPort(l.Addr().String())
			to, from = append(to, port, free), append(from, free, port)
		}
	}
	return strings.NewReplacer(to...), strings.NewReplacer(from...)
}

// guideShell is the terminal in which a guide is typed.
type guideShell struct {
	t           *testing.T
	dir         string
	there, back *strings.Replacer
	said        string // all that was printed, with the guide's ports
	in          *os.File
	out         chan string
	n           int
}

func newGuideShell(t *testing.T, text string) *guideShell {
	s := &guideShell{t: t, dir: t.TempDir()}
	s.there, s.back = guidePorts(t, text)
	build, err := os.ReadFile(program(t, "noded"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join("artifacts", "noded-"+runtime.GOOS+"-"+runtime.GOARCH), string(build))
	s.standIn()
	s.start()
	return s
}

// standIn puts a llama-server into the shell's PATH: a fake backend that takes four requests at a time.
func (s *guideShell) standIn() {
	b := newBackend(s.t, backend.Options{Limit: 4, Default: backend.Plan{Tokens: 20, First: 4 * time.Second, Usage: true}})
	_, port, _ := net.SplitHostPort(b.Address())
	// Two ports for one server: the guide's is forwarded by the stand-in, which lives as long as the guide lets it.
	script := fmt.Sprintf("#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = --port ] && port=$2; shift; done\nexec %q %s 127.0.0.1:%s 127.0.0.1:\"$port\"\n",
		self(s.t), guideForwardCommand, port)
	s.write("stand-in/llama-server", script)
	if err := os.Chmod(filepath.Join(s.dir, "stand-in", "llama-server"), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

func (s *guideShell) write(name, body string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if strings.HasSuffix(name, ".yaml") {
		body = s.there.Replace(body)
	}
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// follow types a block and compares.
func (s *guideShell) follow(b *guideBlock) {
	s.t.Helper()
	line := s.recall(b.body)
	deadline := time.Now().Add(patience)
	if *update {
		deadline = time.Now().Add(3 * time.Second)
	}
	for {
		printed, code := s.typed(line)
		fits := code == b.code() && (b.output == nil || guideFits(b.output.body, printed))
		if fits || !b.has("until") || time.Now().After(deadline) {
			s.judge(b, printed, code, fits)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *guideShell) judge(b *guideBlock, printed, code string, fits bool) {
	s.t.Helper()
	s.said += printed
	if fits {
		return
	}
	if *update && b.output != nil {
		b.output.fresh, b.output.update = strings.TrimSpace(printed)+"\n", true
		if code == b.code() {
			return
		}
	}
	want := ""
	if b.output != nil {
		want = "\nwant:\n" + b.output.body
	}
	s.t.Errorf("docs/TUTORIAL.md:%d: exit code %s, want %s:\n%s\nprinted:\n%s%s", b.line, code, b.code(), b.body, printed, want)
}

// recall fills in what a … stands for: the word behind the same letters in what was printed last.
func (s *guideShell) recall(body string) string {
	for {
		before, after, found := strings.Cut(body, "…")
		if !found {
			return body
		}
		body = before + s.wordAfter(before) + after
	}
}

func (s *guideShell) wordAfter(before string) string {
	for from := max(0, len(before)-20); from <= len(before)-4; from++ {
		if at := strings.LastIndex(s.said, before[from:]); at >= 0 {
			word, _, _ := strings.Cut(s.said[at+len(before)-from:], "\n")
			if f := strings.Fields(word); len(f) > 0 {
				return f[0]
			}
		}
	}
	s.t.Errorf("nothing was printed that begins as %q ends", tail(before, 1))
	return ""
}

// guideFits compares what is printed with what a guide shows.
func guideFits(shown, printed string) bool {
	var re strings.Builder
	re.WriteString(`^`)
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n") {
		if strings.TrimSpace(line) == "…" {
			re.WriteString(`(?:[^\n]*\n)*`)
			continue
		}
		var parts []string
		for _, part := range strings.Split(guideShape(line), "…") {
			parts = append(parts, regexp.QuoteMeta(part))
		}
		re.WriteString(strings.Join(parts, `[^\n]*`) + `\n`)
	}
	var got strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(printed), "\n") {
		got.WriteString(guideShape(line) + "\n")
	}
	return regexp.MustCompile(re.String() + `$`).MatchString(got.String())
}

var guideShapes = []struct {
	of *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "DAY"},
	{regexp.MustCompile(`\biop_[\w-]{43}`), "iop_TOKEN"},
	{regexp.MustCompile(`\breq_[0-9a-f]{4,}`), "req_ID"},
	{regexp.MustCompile(`\b(index|term|generation|lease|place|revision) \d+(, \d+)*`), "$1 N"},
	{regexp.MustCompile(`#\d+ ready`), "#N ready"},
	{regexp.MustCompile(`\bready +\d+`), "ready N"},
	{regexp.MustCompile(`\b[0-9a-f]{12,}`), "HEX"},
	{regexp.MustCompile(`\bnow\b|\b\d+(\.\d+)?(ms|µs|s|m|h)(\d+(\.\d+)?(ms|s|m))*( ago)?\b`), "SPAN"},
	{regexp.MustCompile(`\b\d{2,}\b`), "N"},
	{regexp.MustCompile(`[-─]{4,}`), "RULE"},
	{regexp.MustCompile(`\s+`), " "},
}

// guideShape leaves out of a line what differs from run to run: times, spans, tokens, digests, numbers from 10 on, widths.
func guideShape(line string) string {
	for _, s := range guideShapes {
		line = s.of.ReplaceAllString(line, s.to)
	}
	return strings.TrimSpace(line)
}
