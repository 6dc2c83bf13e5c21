package top

import (
	"strings"
	"unicode/utf8"
)

// filterMax bounds the filter in bytes.
const filterMax = 200

// typed is a key in the line of the filter. The list follows at once; Enter keeps the filter, Esc takes it away.
func (m *model) typed(name, text string) {
	switch name {
	case "enter":
		m.filtering = false
	case "esc":
		m.filter, m.filtering = "", false
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	case "ctrl+u":
		m.filter = ""
	case "up", "down":
		m.filtering = false
		m.listKey(name)
		return
	default:
		m.extend(text)
	}
	m.arrange()
}

// pasted goes into the filter, if that is where the keys go. Elsewhere a paste would be a row of commands.
func (m *model) pasted(text string) {
	if m.filtering {
		m.extend(strings.Join(strings.Fields(text), " "))
		m.arrange()
	}
}

func (m *model) extend(text string) {
	if len(m.filter)+len(text) <= filterMax {
		m.filter += text
	}
}
