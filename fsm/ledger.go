package fsm

import (
	"cmp"
	"slices"
)

// Usage is what a run used, as its backend reported. The zero value says that nothing was reported; then the run is counted
// and its tokens are not. A reported zero is a number.
type Usage struct {
	Told       bool
	Prompt     int64 // tokens, cached ones too
	Completion int64 // tokens, those of reasoning too
	Cached     int64 // of Prompt
	Reasoning  int64 // of Completion
}

// The bounds of the ledger. What goes beyond them is summed up in rows without names.
const (
	// UsageRowsMax is how many rows with names are kept. When there is one more, the first day goes.
	UsageRowsMax = 100_000
	// UsageDaysMax is how many days with runs are kept.
	UsageDaysMax = 400
)

// UsageKey names a row of the ledger. A row without a provider sums up what had no room: on a day of its own all that
// came when the rows were used up by that day, on day 0 all days that are no longer kept.
type UsageKey struct {
	Day       int64 // UTC days since 1970-01-01, by the wall stamp of the entry
	Principal PrincipalID
	Token     string // token_ref
	Model     ModelID
	Provider  ProviderID
}

// UsageRow is what the runs of one key used.
type UsageRow struct {
	UsageKey
	Requests   uint64 // runs that came to an end
	Aborted    uint64 // of them, those that did not end as they should
	Untold     uint64 // of them, those whose tokens nobody reported
	Prompt     uint64
	Completion uint64
	Cached     uint64
	Reasoning  uint64
}

// ledger sums up what was used.
type ledger struct {
	rows  map[UsageKey]*UsageRow
	days  []ledgerDay // in order
	named int         // rows with a provider
}

// ledgerDay is the rows of a day, as they came.
type ledgerDay struct {
	day  int64
	rows []*UsageRow
}

const dayLength = 24 * 3600 * int64(Second)

// account counts the run of a lease that has just gone back, once and for all. Who provably did not run is no run.
func (m *Machine) account(r *request, p ProviderID, why Reason, u Usage) {
	if !r.metered || why == ReasonNotRun || why == ReasonNeverSent {
		return
	}
	key := UsageKey{Day: max(m.wall, 0) / dayLength, Principal: r.who.id, Token: r.token, Model: r.model, Provider: p}
	if r.direct {
		key.Model = ModelID("provider:" + string(p)) // what else its name says is the client's choice, and without bound
	}
	row := m.ledger.row(key)
	m.metered++
	row.Requests++
	if why != ReasonDone {
		row.Aborted++
	}
	if !u.Told {
		row.Untold++
		return
	}
	row.Prompt += uint64(max(u.Prompt, 0))
	row.Completion += uint64(max(u.Completion, 0))
	row.Cached += uint64(max(u.Cached, 0))
	row.Reasoning += uint64(max(u.Reasoning, 0))
}

// row returns the row that a run is counted in, and makes room for a new one.
func (l *ledger) row(key UsageKey) *UsageRow {
	if row := l.rows[key]; row != nil {
		return row
	}
	_, there := l.day(key.Day)
	if !there && len(l.days) >= UsageDaysMax || l.named >= UsageRowsMax {
		switch {
		case l.days[0].day < key.Day:
			l.fold()
		case !there:
			return l.put(UsageKey{}) // it is older than all that are kept
		default:
			return l.put(UsageKey{Day: key.Day})
		}
	}
	return l.put(key)
}

// day tells where a day is, or would be.
func (l *ledger) day(day int64) (int, bool) {
	return slices.BinarySearchFunc(l.days, day, func(d ledgerDay, day int64) int { return cmp.Compare(d.day, day) })
}

// put returns the row of a key, a new one if there is none.
func (l *ledger) put(key UsageKey) *UsageRow {
	if row := l.rows[key]; row != nil {
		return row
	}
	row := &UsageRow{UsageKey: key}
	l.rows[key] = row
	if key == (UsageKey{}) {
		return row
	}
	i, there := l.day(key.Day)
	if !there {
		l.days = slices.Insert(l.days, i, ledgerDay{day: key.Day})
	}
	l.days[i].rows = append(l.days[i].rows, row)
	if key.Provider != "" {
		l.named++
	}
	return row
}

// fold sums the first day up in the row of the days that are no longer kept.
func (l *ledger) fold() {
	rest := l.put(UsageKey{})
	for _, row := range l.days[0].rows {
		rest.add(row)
		delete(l.rows, row.UsageKey)
		if row.Provider != "" {
			l.named--
		}
	}
	l.days = slices.Delete(l.days, 0, 1)
}

func (r *UsageRow) add(o *UsageRow) {
	r.Requests += o.Requests
	r.Aborted += o.Aborted
	r.Untold += o.Untold
	r.Prompt += o.Prompt
	r.Completion += o.Completion
	r.Cached += o.Cached
	r.Reasoning += o.Reasoning
}

// Usage returns the ledger in the order of its keys: day, principal, token, model, provider.
func (m *Machine) Usage() []UsageRow {
	if len(m.ledger.rows) == 0 {
		return nil
	}
	rows := make([]UsageRow, 0, len(m.ledger.rows))
	if rest := m.ledger.rows[UsageKey{}]; rest != nil {
		rows = append(rows, *rest)
	}
	for _, d := range m.ledger.days {
		for _, row := range d.rows {
			rows = append(rows, *row)
		}
	}
	slices.SortFunc(rows, func(a, b UsageRow) int { return compareUsage(&a.UsageKey, &b.UsageKey) })
	return rows
}

func compareUsage(a, b *UsageKey) int {
	return cmp.Or(
		cmp.Compare(a.Day, b.Day), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Token, b.Token),
		cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider),
	)
}

// restoreUsage fills the ledger from an image.
func (m *Machine) restoreUsage(img *Image) {
	for i := range img.Usage {
		*m.ledger.put(img.Usage[i].UsageKey) = img.Usage[i]
	}
	m.metered = img.Metered
}

// checkLedger: every metered run that ended is in the ledger once.
func (m *Machine) checkLedger(c *checker) {
	l := &m.ledger
	var sum uint64
	rows, named := 0, 0
	count := func(day int64, row *UsageRow) {
		rows++
		sum += row.Requests
		c.that(l.rows[row.UsageKey] == row && row.Day == day, "ledger: row %v is misfiled", row.UsageKey)
		c.that(row.Aborted <= row.Requests && row.Untold <= row.Requests, "ledger: row %v has more than all of its runs", row.UsageKey)
		if row.Provider != "" {
			named++
		}
	}
	if rest := l.rows[UsageKey{}]; rest != nil {
		count(0, rest)
	}
	for i, d := range l.days {
		c.that(i == 0 || l.days[i-1].day < d.day, "ledger: day %d is out of order", d.day)
		for _, row := range d.rows {
			count(d.day, row)
		}
	}
	c.that(sum == m.metered, "I10: %d metered runs ended, %d are in the ledger", m.metered, sum)
	c.that(rows == len(l.rows) && named == l.named, "ledger: %d rows, %d filed, %d with names, %d counted", rows, len(l.rows), named, l.named)
	c.that(named <= UsageRowsMax && len(l.days) <= UsageDaysMax, "ledger: %d rows of %d days", named, len(l.days))
}
