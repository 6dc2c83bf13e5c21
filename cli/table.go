package cli

import (
	"bytes"
	"fmt"
	"strings"
)

// page is what is shown to people.
type page struct {
	text  bytes.Buffer
	wide  bool
	color bool
}

// line writes one line.
func (p *page) line(format string, args ...any) {
	p.text.WriteString(printable(fmt.Sprintf(format, args...)))
	p.text.WriteByte('\n')
}

// column of a table. A wide one is shown only if asked for.
type column struct {
	name  string
	wide  bool
	right bool // numbers
}

// table is rows under columns; a cell is a text, or a painted one.
type table struct {
	columns []column
	rows    [][]cell
	empty   string // said instead of a table without rows
}

// cell is a text and, on a terminal, its colour.
type cell struct {
	text  string
	paint paint
}

// paint is a colour by its meaning.
type paint int

const (
	paintNone paint = iota
	paintGood
	paintBusy
	paintBad
)

// code is the terminal's number of the colour.
func (p paint) code() int {
	switch p {
	case paintGood:
		return 32
	case paintBusy:
		return 33
	case paintBad:
		return 31
	}
	return 0
}

// cells makes a row of plain cells; each value is a string, a number or a cell.
func cells(values ...any) []cell {
	row := make([]cell, len(values))
	for i, v := range values {
		if c, ok := v.(cell); ok {
			row[i] = c
		} else {
			row[i] = cell{text: fmt.Sprint(v)}
		}
	}
	return row
}

// table writes a table, columns aligned by what a terminal shows.
func (p *page) table(t *table) {
	if len(t.rows) == 0 {
		p.line("%s", t.empty)
		return
	}
	shown := t.shown(p.wide)
	head := make([]cell, len(t.columns))
	for i, c := range t.columns {
		head[i].text = c.name
	}
	rows := append([][]cell{head}, t.rows...)
	widths := make([]int, len(t.columns))
	for _, row := range rows {
		for _, i := range shown {
			row[i].text = orDash(printable(row[i].text))
			widths[i] = max(widths[i], width(row[i].text))
		}
	}
	for _, row := range rows {
		p.row(t, row, shown, widths)
	}
}

func (t *table) shown(wide bool) []int {
	var shown []int
	for i, c := range t.columns {
		if wide || !c.wide {
			shown = append(shown, i)
		}
	}
	return shown
}

func (p *page) row(t *table, row []cell, shown, widths []int) {
	var b strings.Builder
	for k, i := range shown {
		if k > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", widths[i]-width(row[i].text))
		text := p.painted(row[i])
		if t.columns[i].right {
			b.WriteString(pad + text)
		} else {
			b.WriteString(text + pad)
		}
	}
	p.text.WriteString(strings.TrimRight(b.String(), " "))
	p.text.WriteByte('\n')
}

func (p *page) painted(c cell) string {
	if !p.color || c.paint == paintNone {
		return c.text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c.paint.code(), c.text)
}

// fields writes names and values, one pair a line.
func (p *page) fields(pairs ...[2]string) {
	wide := 0
	for _, f := range pairs {
		wide = max(wide, width(f[0]))
	}
	for _, f := range pairs {
		p.line("%s%s  %s", f[0], strings.Repeat(" ", wide-width(f[0])), orDash(f[1]))
	}
}
