package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"iop/edged/adminapi"
)

// rateSeconds is over how many seconds rates are taken, waitSeconds how far back the newest wait may be.
const (
	rateSeconds = 5
	waitSeconds = 60
)

// head draws the lines above the list: who answers, how full it is, how fast it goes, how long one waits.
func (m *model) head() []string {
	lines := []string{m.whoLine(), m.loadLine()}
	if m.lost != nil {
		return append(lines, m.lostLines()...)
	}
	return append(lines, m.rateLine(), m.waitLine())
}

// sides puts one text at the left and one, which is kept whole, at the right.
func (m *model) sides(left, right string, p paint) string {
	w := m.width - ansi.StringWidth(right) - 1
	return m.scene.fit(left, w, false) + " " + p.on(right)
}

func (m *model) whoLine() string {
	h := &m.shown.head
	who := []string{"iop " + h.Edge + " (" + h.Role + ")"}
	switch h.Leader {
	case "":
		who = append(who, "no leader: nothing is admitted")
	case h.Edge:
		who = []string{fmt.Sprintf("iop %s (leader, term %d)", h.Edge, h.Term)}
	default:
		who = append(who, fmt.Sprintf("leader %s, term %d", h.Leader, h.Term))
	}
	facts := append(who, fmt.Sprintf("revision %d", h.Revision), fmt.Sprintf("index %d", h.AppliedIndex))
	if h.Lag > 0 {
		facts = append(facts, fmt.Sprintf("%d behind", h.Lag))
	}
	if h.Version != "" {
		facts = append(facts, h.Version)
	}
	left := m.facts(facts...)
	switch {
	case m.lost != nil:
		return m.sides(left, " NOT CONNECTED ", alarm)
	case m.paused:
		return m.sides(left, " PAUSED ", alarm)
	case m.silence() > silenceMax:
		return m.sides(left, " NO NEWS FOR "+seconds(m.silence())+" ", alarm)
	case h.Leader == "":
		return m.sides(left, " NO LEADER ", alarm)
	}
	return m.sides(left, "live", good)
}

// silenceMax is how long, in ms, a feed that brings a frame a second may be silent before that is said.
const silenceMax = 5000

// silence is how long ago the newest frame came, in ms.
func (m *model) silence() int64 { return m.nowIs.Sub(m.newest.at).Milliseconds() }

func (m *model) facts(facts ...string) string {
	return m.scene.clean(strings.Join(facts, " "+m.scene.glyphs.dot+" "))
}

func (m *model) loadLine() string {
	h := &m.shown.head
	nodes := 0
	for _, n := range m.shown.nodes {
		if n.Connected {
			nodes++
		}
	}
	facts := []string{
		fmt.Sprintf("queue %s %d/%d, %d long", m.scene.gauge(h.Queue.Pending, h.Queue.Max, 10), h.Queue.Pending, h.Queue.Max, h.Queue.LongPending),
		fmt.Sprintf("in flight %d", len(m.shown.leases)),
		fmt.Sprintf("nodes %d/%d", nodes, len(m.shown.nodes)),
	}
	if len(m.shown.members) > 1 {
		reached := 0
		for _, x := range m.shown.members {
			if x.Reachable {
				reached++
			}
		}
		facts = append(facts, fmt.Sprintf("replicas %d/%d", reached, len(m.shown.members)))
	}
	return m.scene.fit(m.facts(facts...), m.width, false)
}

func (m *model) rateLine() string {
	requests, errs, tokens := rates(m.shown.seconds)
	facts := []string{rate(requests) + " req/s", rate(errs) + " errors/s", rate(tokens) + " tokens/s", "wait " + lastWait(m.shown.seconds)}
	return m.scene.fit(m.facts(facts...), m.width, false)
}

// rates are means over the last seconds.
func rates(samples []adminapi.Sample) (requests, errs, tokens float64) {
	samples = samples[max(0, len(samples)-rateSeconds):]
	var ms int64
	for i := range samples {
		s := &samples[i]
		ms += s.StepMS
		requests += float64(s.Requests)
		errs += float64(s.Errors)
		tokens += float64(s.TokensIn + s.TokensOut)
	}
	if ms == 0 {
		return 0, 0, 0
	}
	per := 1000 / float64(ms)
	return requests * per, errs * per, tokens * per
}

// lastWait is the newest second in which somebody got a slot.
func lastWait(samples []adminapi.Sample) string {
	samples = samples[max(0, len(samples)-waitSeconds):]
	for i := len(samples) - 1; i >= 0; i-- {
		if w := samples[i].WaitMS; w.P50 != nil {
			return fmt.Sprintf("p50 %s p90 %s p99 %s", quantile(w.P50), quantile(w.P90), quantile(w.P99))
		}
	}
	return "p50 - p90 - p99 -"
}

func quantile(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return adminapi.Span(int64(*ms))
}

// waitLine draws the waits of the last seconds, one a column.
func (m *model) waitLine() string {
	values := make([]*float64, len(m.shown.seconds))
	for i := range m.shown.seconds {
		values[i] = m.shown.seconds[i].WaitMS.P90
	}
	const right = 13
	label := "waits p90 "
	width := max(1, m.width-len(label)-right)
	values = values[max(0, len(values)-width):]
	return label + m.scene.sparkline(values, width) + m.scene.fit(" most "+adminapi.Span(int64(highest(values))), right, false)
}

// lostLines say plainly that what is shown is old.
func (m *model) lostLines() []string {
	at := m.shown.at.Format("15:04:05")
	first := fmt.Sprintf(" Not connected for %s. All numbers here are OLD: from %s. Trying again.", seconds(m.nowIs.Sub(m.lost.at).Milliseconds()), at)
	return []string{
		alarm.on(m.scene.fit(first, m.width, false)),
		bad.on(m.scene.fit(" "+m.scene.clean(faultText(m.lost.err)), m.width, false)),
	}
}
