package admin

import (
	"time"

	"iop/fsm"
)

// moment is cluster time as a reader sees it. The machine's own time is that of its last entry and stands still while
// nothing happens; so that an age goes on, the wall time since that entry is added. People read it, nothing decides by it.
type moment fsm.Time

func momentOf(m *fsm.Machine) moment {
	return momentAt(m.Now(), m.Wall(), time.Now())
}

func momentAt(last fsm.Time, lastWall int64, now time.Time) moment {
	if lastWall == 0 {
		return moment(last)
	}
	return moment(last) + moment(max(0, now.UnixNano()-lastWall))
}

// since gives whole milliseconds; negative for what is still to come.
func (m moment) since(t fsm.Time) int64 { return int64((fsm.Time(m) - t) / fsm.Millisecond) }
