package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// The least screen that shows something of use; below it only that is said.
const (
	widthLeast  = 40
	heightLeast = 10
)

// Lines around the list: the head, the names of the lists, the notice, the keys.
const (
	headHeight   = 4
	aroundHeight = headHeight + 3
)

// View draws the whole screen.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "iopctl top"
	return v
}

// screen gives the lines, as many as the terminal has.
func (m *model) screen() []string {
	m.scene.nowMS = m.edgeNow()
	if m.width < widthLeast || m.height < heightLeast {
		text := fmt.Sprintf("The terminal is too small: %dx%d, needs %dx%d.", m.width, m.height, widthLeast, heightLeast)
		return strings.Split(ansi.Wrap(text, max(1, m.width), ""), "\n")[:1]
	}
	lines := append(m.head(), m.tabs())
	foot := m.foot()
	lines = append(lines, m.body(m.height-len(lines)-len(foot))...)
	return append(lines, foot...)
}

// bodyHeight is that without a question.
func (m *model) bodyHeight() int { return m.height - aroundHeight }

func (m *model) body(height int) []string {
	var lines []string
	switch {
	case m.help:
		for _, l := range helpLines() {
			lines = append(lines, m.scene.fit("  "+l, m.width, false))
		}
	case m.story != nil:
		lines = m.story.draw(m.scene, m.width, height)
	default:
		lines = m.panes[m.active].draw(m.scene, m.width, height)
	}
	lines = lines[:min(len(lines), height)]
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines
}

// tabs names the lists, how much is in them, and how the one that is seen is filtered and ordered.
func (m *model) tabs() string {
	var names []string
	for i, p := range m.panes {
		shown, all := p.counts()
		n := fmt.Sprint(all)
		if i == m.active && m.filter != "" {
			n = fmt.Sprintf("%d of %d", shown, all)
		}
		name := fmt.Sprintf(" %d %s %s ", i+1, p.title(), n)
		if i == m.active {
			name = "[" + strings.TrimSpace(name) + "]"
		}
		names = append(names, name)
	}
	text := strings.Join(names, " ")
	if by := m.panes[m.active].order(); by != "" {
		text += "  by " + by
	}
	if m.filter != "" && !m.filtering {
		text += "  filter: " + m.scene.clean(m.filter)
	}
	return strong.on(m.scene.fit(text, m.width, false))
}

// foot draws the notice, the filter's line or the question, and below them the keys.
func (m *model) foot() []string {
	switch {
	case m.question != nil:
		return m.questionLines()
	case m.filtering:
		return []string{m.filterLine(), m.keyLine("Enter: keep the filter  Esc: all rows again")}
	case m.help:
		return []string{"", m.keyLine("any key: back")}
	}
	line := ""
	if m.notice.text != "" && m.nowIs.Before(m.notice.until) {
		line = m.notice.paint.on(m.scene.fit(" "+m.scene.clean(m.notice.text), m.width, false))
	}
	keys := "? help  Tab list  Enter explain  s order  / filter  " + m.actionKeys() + "p pause  q quit"
	if m.story != nil {
		keys = "Esc back  Up/Down scroll  r ask again  ? help  Ctrl-C quit"
	}
	return []string{line, m.keyLine(keys)}
}

// actionKeys are those that do something in the list that is seen.
func (m *model) actionKeys() string {
	switch m.panes[m.active].(type) {
	case *list[provider]:
		return "d drain  "
	case *list[waiter]:
		return "x cancel  "
	}
	return ""
}

func (m *model) keyLine(text string) string {
	return faint.on(m.scene.fit(" "+text, m.width, false))
}

// filterLine shows the end of a filter that is longer than the screen, with a cursor of its own.
func (m *model) filterLine() string {
	const label = " Filter: "
	text := m.scene.clean(m.filter)
	if over := ansi.StringWidth(text) - (m.width - len(label) - 1); over > 0 {
		text = ansi.TruncateLeft(text, over+1, "")
	}
	return m.scene.fit(label+text+"_", m.width, false)
}

// questionLines are as many as the question needs.
func (m *model) questionLines() []string {
	var lines []string
	text := ansi.Wrap(m.scene.clean(m.question.text), m.width-2, "")
	parts := strings.Split(text, "\n")
	for _, l := range parts[:min(len(parts), max(1, m.height-aroundHeight))] {
		lines = append(lines, alarm.on(m.scene.fit(" "+l, m.width, false)))
	}
	return append(lines, strong.on(m.scene.fit(" y: yes, do it   Esc or n: no, change nothing", m.width, false)))
}
