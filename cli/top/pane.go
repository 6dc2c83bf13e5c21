package top

import (
	"cmp"
	"slices"
	"strings"
)

// pane is one of the lists.
type pane interface {
	title() string
	counts() (shown, all int)
	take(*still)
	arrange(filter []string)
	move(by int)
	draw(s *scene, width, height int) []string
	nextOrder(by int)
	flip()
	order() string
}

// column of a list. One with a width is fixed; others share what is left by weight.
type column[T any] struct {
	name    string
	width   int
	weight  int
	most    int // of one with a weight; 0 = no bound
	from    int // it is shown on screens at least this wide
	right   bool
	text    func(s *scene, row T, width int) string // clean
	paint   func(row T) paint
	compare func(a, b T) int
}

// list is a pane of rows of one kind.
type list[T any] struct {
	name    string
	none    string // said of an empty one
	columns []column[T]
	rows    func(*still) []T // in their own order
	id      func(T) string   // stays while a row changes
	words   func(T) []string // what the filter looks at
	all     []T              // of the still
	shown   []int            // of all, filtered and in order
	by      int              // column that orders them; -1 = their own order
	back    bool             // the other way round
	cursor  int              // into shown
	mark    string           // id of the row at the cursor: it stays at it when rows come and go
	top     int              // first row that is seen
}

func (l *list[T]) title() string            { return l.name }
func (l *list[T]) counts() (shown, all int) { return len(l.shown), len(l.all) }
func (l *list[T]) take(s *still)            { l.all = l.rows(s) }

// arrange filters and orders the rows, and finds the one at the cursor again.
func (l *list[T]) arrange(filter []string) {
	l.shown = l.shown[:0]
	for i, row := range l.all {
		if len(filter) == 0 || matches(filter, l.words(row)) {
			l.shown = append(l.shown, i)
		}
	}
	switch {
	case l.by >= 0:
		compare := l.columns[l.by].compare
		slices.SortFunc(l.shown, func(i, j int) int {
			a, b := i, j
			if l.back {
				a, b = j, i
			}
			return cmp.Or(compare(l.all[a], l.all[b]), cmp.Compare(i, j))
		})
	case l.back:
		slices.Reverse(l.shown)
	}
	if i := slices.IndexFunc(l.shown, func(i int) bool { return l.id(l.all[i]) == l.mark }); i >= 0 {
		l.cursor = i
	}
	l.move(0)
}

// matches tells whether each word of the filter is somewhere in the row. The filter is in lower case.
func matches(filter, words []string) bool {
	for _, f := range filter {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), f) }) {
			return false
		}
	}
	return true
}

func (l *list[T]) move(by int) {
	l.cursor = max(0, min(l.cursor+by, len(l.shown)-1))
	l.mark = ""
	if row, ok := l.current(); ok {
		l.mark = l.id(row)
	}
}

// current is the row at the cursor.
func (l *list[T]) current() (row T, ok bool) {
	if l.cursor >= len(l.shown) {
		return row, false
	}
	return l.all[l.shown[l.cursor]], true
}

// nextOrder takes the next column that rows can be ordered by, or the one before; between last and first is their own order.
func (l *list[T]) nextOrder(by int) {
	n := len(l.columns) + 1
	for {
		l.by = (l.by+1+by+n)%n - 1
		if l.by < 0 || l.columns[l.by].compare != nil {
			l.back = false
			return
		}
	}
}

func (l *list[T]) flip() { l.back = !l.back }

func (l *list[T]) order() string {
	if l.by < 0 {
		return ""
	}
	return l.columns[l.by].name
}

// draw draws the names of the columns and the rows that fit.
func (l *list[T]) draw(s *scene, width, height int) []string {
	shown, widths := l.layout(width)
	lines := []string{strong.on(s.fit(l.header(s, shown, widths), width, false))}
	rows := height - 1
	l.top = max(0, min(l.top, l.cursor, len(l.shown)-rows))
	if l.cursor >= l.top+rows {
		l.top = l.cursor - rows + 1
	}
	for i := l.top; i < min(l.top+rows, len(l.shown)); i++ {
		lines = append(lines, l.line(s, i, shown, widths))
	}
	if len(l.shown) == 0 && rows > 0 {
		text := l.none
		if len(l.all) > 0 {
			text = "No row has all the words of the filter. Esc takes it away."
		}
		lines = append(lines, s.fit("  "+text, width, false))
	}
	return lines
}

func (l *list[T]) header(s *scene, shown, widths []int) string {
	cells := make([]string, len(shown))
	for k, i := range shown {
		name := l.columns[i].name
		if i == l.by {
			name += map[bool]string{false: s.glyphs.up, true: s.glyphs.down}[l.back]
		}
		cells[k] = s.fit(name, widths[k], l.columns[i].right)
	}
	return "  " + strings.Join(cells, " ")
}

func (l *list[T]) line(s *scene, at int, shown, widths []int) string {
	row := l.all[l.shown[at]]
	cells := make([]string, len(shown))
	for k, i := range shown {
		c := &l.columns[i]
		cells[k] = s.fit(c.text(s, row, widths[k]), widths[k], c.right)
		if c.paint != nil && at != l.cursor {
			cells[k] = c.paint(row).on(cells[k])
		}
	}
	text := strings.Join(cells, " ")
	if at == l.cursor {
		return chosen.on("> " + text)
	}
	return "  " + text
}

// layout tells which columns are shown on a screen, and how wide.
func (l *list[T]) layout(width int) (shown, widths []int) {
	left, weights := width-2, 0
	for i := range l.columns {
		c := &l.columns[i]
		if width < c.from {
			continue
		}
		shown = append(shown, i)
		widths = append(widths, c.width)
		left -= c.width + 1
		weights += c.weight
	}
	left++ // there is no gap behind the last one
	for k, i := range shown {
		c := &l.columns[i]
		if c.weight == 0 || weights == 0 {
			continue
		}
		widths[k] = max(1, left*c.weight/weights)
		if c.most > 0 {
			widths[k] = min(widths[k], c.most)
		}
		left, weights = left-widths[k], weights-c.weight
	}
	return shown, widths
}
