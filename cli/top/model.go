package top

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// model is the whole state of the view. Only the program's loop touches it.
type model struct {
	o     *Options
	start func(func(context.Context) tea.Msg) // does something beside the loop and sends what comes of it

	shown  *still // what is drawn
	newest *still // what came last; another one than shown while paused
	lost   *lost  // nil = connected
	paused bool

	pausedAt time.Time
	nowIs    time.Time // when the message at hand came

	width, height int
	panes         []pane
	active        int

	filter    string
	filtering bool      // keys go into the filter
	question  *question // waits for yes or no
	story     *story    // an explanation over the list
	help      bool
	notice    notice

	scene *scene
}

// notice is one line about what was done or can't be.
type notice struct {
	text  string
	paint paint
	until time.Time
}

// noticeTime is how long a notice stays.
const noticeTime = 8 * time.Second

func newModel(o *Options, first *still) *model {
	m := &model{
		o: o, panes: []pane{newProviders(), newQueue(), newLeases()}, scene: newScene(o.Unicode), width: 80, height: 24, nowIs: o.Now(),
	}
	m.show(first)
	return m
}

// Init begins nothing: the feed comes by itself.
func (m *model) Init() tea.Cmd { return nil }

// Update takes one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.nowIs = m.o.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.pasted(msg.Content)
	case *still:
		m.arrived(msg)
	case *lost:
		m.broke(msg)
	case told:
		m.told(msg)
	case done:
		m.did(msg)
	}
	return m, nil
}

func (m *model) arrived(s *still) {
	if m.lost != nil {
		m.lost = nil
		m.say(good, "Connected again, to edge "+s.head.Edge+".")
	}
	m.newest = s
	if !m.paused {
		m.show(s)
	}
}

// broke keeps the time of the first of several failures in a row.
func (m *model) broke(l *lost) {
	if m.lost != nil {
		l.at = m.lost.at
	}
	m.lost = l
}

// show draws from a still from now on.
func (m *model) show(s *still) {
	m.shown, m.newest = s, s
	for _, p := range m.panes {
		p.take(s)
	}
	m.arrange()
}

// arrange orders the rows of the list that is seen; the others' when they are.
func (m *model) arrange() {
	m.panes[m.active].arrange(strings.Fields(strings.ToLower(m.filter)))
}

func (m *model) turnTo(pane int) {
	m.active = (pane + len(m.panes)) % len(m.panes)
	m.arrange()
}

func (m *model) pause() {
	if m.paused = !m.paused; m.paused {
		m.pausedAt = m.nowIs
		return
	}
	m.show(m.newest)
}

func (m *model) say(p paint, text string) {
	m.notice = notice{text: text, paint: p, until: m.nowIs.Add(noticeTime)}
}

// edgeNow is the time by the edge's clock for which ages are shown. It stands still with the numbers.
func (m *model) edgeNow() int64 {
	until := m.nowIs
	if m.lost != nil {
		until = m.lost.at
	}
	if m.paused && m.pausedAt.Before(until) {
		until = m.pausedAt
	}
	return m.shown.head.AtMS + max(0, until.Sub(m.shown.at).Milliseconds())
}
