package storage

import "time"

// refrainFor is how long what was said last is not said again.
const refrainFor = time.Minute

// refrain keeps what is tried many times a second from being logged as often: each new text is said at once, the same one
// once a minute. It belongs to one goroutine at a time.
type refrain struct {
	text string
	at   time.Time
}

// speak tells whether to say it.
func (r *refrain) speak(text string) bool {
	now := time.Now()
	if text == r.text && now.Sub(r.at) < refrainFor {
		return false
	}
	r.text, r.at = text, now
	return true
}
