package top

import tea "charm.land/bubbletea/v2"

// key gives a key to whoever has the word: the question, the filter's line, the explanation, or the list.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.question != nil:
		m.answer(name)
	case m.filtering:
		m.typed(name, k.Key().Text)
	case m.help:
		m.help = false
	case m.story != nil && m.storyKey(name):
	case name == "q":
		return tea.Quit
	default:
		m.listKey(name)
	}
	return nil
}

func (m *model) listKey(name string) {
	p := m.panes[m.active]
	page := max(1, m.bodyHeight()-2)
	switch name {
	case "up", "k":
		p.move(-1)
	case "down", "j":
		p.move(1)
	case "pgup", "ctrl+b":
		p.move(-page)
	case "pgdown", "ctrl+f":
		p.move(page)
	case "home", "g":
		p.move(-rowsMax)
	case "end", "G":
		p.move(rowsMax)
	case "tab", "right", "l":
		m.turnTo(m.active + 1)
	case "shift+tab", "left", "h":
		m.turnTo(m.active - 1)
	case "1", "2", "3":
		m.turnTo(int(name[0] - '1'))
	case "s", ">":
		p.nextOrder(1)
		m.arrange()
	case "S", "<":
		p.nextOrder(-1)
		m.arrange()
	case "r":
		p.flip()
		m.arrange()
	default:
		m.actionKey(name)
	}
}

// rowsMax is more than there are rows.
const rowsMax = 1 << 30

func (m *model) actionKey(name string) {
	switch name {
	case "/":
		m.filtering = true
	case "esc":
		m.filter = ""
		m.notice = notice{}
		m.arrange()
	case "enter":
		m.explain()
	case "d":
		m.askDrain()
	case "D":
		m.askDrainNode()
	case "x":
		m.askCancel()
	case "p", "space":
		m.pause()
	case "?":
		m.help = true
	}
}
