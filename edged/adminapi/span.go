package adminapi

import (
	"fmt"
	"time"
)

// Span shows milliseconds as people say them: 850ms, 12.3s, 4m05s, 3h20m, 2d4h. Less than none is none.
func Span(ms int64) string {
	ms = max(0, ms)
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%d.%ds", ms/1000, ms%1000/100)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
