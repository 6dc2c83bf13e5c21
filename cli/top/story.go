package top

import (
	"context"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"iop/edged/adminapi"
)

// story is the explanation of one thing, shown instead of the list.
type story struct {
	kind  Kind
	id    string
	lines []string // clean; nil = it is still asked for
	fault bool
	top   int // first line that is seen
}

// told is what was told about a thing.
type told struct {
	kind Kind
	id   string
	text string
	err  error
}

// explain asks about the row at the cursor.
func (m *model) explain() {
	switch l := m.panes[m.active].(type) {
	case *list[provider]:
		if p, ok := l.current(); ok {
			m.ask(KindProvider, p.ID)
		}
	case *list[waiter]:
		if w, ok := l.current(); ok {
			m.ask(KindRequest, w.Request)
		}
	case *list[adminapi.LiveLease]:
		if x, ok := l.current(); ok {
			m.ask(KindLease, strconv.FormatUint(x.ID, 10))
		}
	}
}

func (m *model) ask(kind Kind, id string) {
	m.story = &story{kind: kind, id: id}
	m.start(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, actionWait)
		defer cancel()
		text, err := m.o.Explain(ctx, kind, id)
		return told{kind: kind, id: id, text: text, err: err}
	})
}

// told takes an answer, if it is still wanted.
func (m *model) told(t told) {
	if m.story == nil || m.story.kind != t.kind || m.story.id != t.id {
		return
	}
	text := t.text
	if m.story.fault = t.err != nil; m.story.fault {
		text = strings.ReplaceAll(faultText(t.err), "; cure: ", "\ncure: ")
	}
	m.story.lines = []string{}
	for line := range strings.Lines(text) {
		m.story.lines = append(m.story.lines, m.scene.clean(strings.TrimRight(line, "\n")))
	}
}

// storyKey tells whether the key was for the explanation.
func (m *model) storyKey(name string) bool {
	page := max(1, m.bodyHeight()-2)
	switch name {
	case "esc", "enter", "q", "backspace":
		m.story = nil
	case "up", "k":
		m.story.top--
	case "down", "j":
		m.story.top++
	case "pgup", "ctrl+b":
		m.story.top -= page
	case "pgdown", "ctrl+f", "space":
		m.story.top += page
	case "home", "g":
		m.story.top = 0
	case "end", "G":
		m.story.top = rowsMax
	case "r":
		m.ask(m.story.kind, m.story.id)
	case "?", "p", "tab", "shift+tab", "1", "2", "3":
		if name != "?" && name != "p" {
			m.story = nil // the list that was asked for
		}
		return false
	}
	return true
}

// draw wraps the lines to the screen and shows those that fit.
func (x *story) draw(s *scene, width, height int) []string {
	title := s.clean(string(x.kind) + " " + x.id)
	out := []string{strong.on(s.fit("  "+title+"   (Esc: back to the list, r: ask again)", width, false))}
	if x.lines == nil {
		return append(out, s.fit("  Asking the edge "+s.glyphs.more, width, false))
	}
	var lines []string
	for _, l := range x.lines {
		lines = append(lines, wrapped(l, width-4)...)
	}
	x.top = max(0, min(x.top, len(lines)-(height-1)))
	for _, l := range lines[x.top:min(len(lines), x.top+height-1)] {
		text := s.fit("  "+l, width, false)
		if x.fault {
			text = bad.on(text)
		}
		out = append(out, text)
	}
	return out
}

// wrapped breaks a line between words; what follows its first part is indented a little more than that.
func wrapped(line string, width int) []string {
	if ansi.StringWidth(line) <= width {
		return []string{line}
	}
	indent := len(line) - len(strings.TrimLeft(line, " ")) + 2
	if indent > width/2 {
		indent = 2
	}
	first, rest, _ := strings.Cut(ansi.Wrap(line, width, ""), "\n")
	lines := []string{first}
	for l := range strings.SplitSeq(ansi.Wrap(strings.Join(strings.Fields(rest), " "), width-indent, ""), "\n") {
		lines = append(lines, strings.Repeat(" ", indent)+l)
	}
	return lines
}
