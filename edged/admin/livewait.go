package admin

import (
	"fmt"
	"strings"

	"iop/edged/adminapi"
	"iop/fsm"
)

// waitsForMax bounds a sentence, in bytes. What is longer is cut: GET /requests/{id} tells all.
const waitsForMax = 160

// waitsFor says in a sentence what holds the waiters of a kind.
func waitsFor(h *fsm.Hold) string {
	if len(h.Reasons) == 0 {
		return "no provider is left that could take it"
	}
	if len(h.Reasons) == 1 {
		return cutText(oneReason(&h.Reasons[0]), waitsForMax)
	}
	parts := make([]string, 0, len(h.Reasons))
	for i := range h.Reasons {
		r := &h.Reasons[i]
		if r.Count == 1 {
			parts = append(parts, oneReason(r))
		} else {
			parts = append(parts, fmt.Sprintf("%d providers %s", r.Count, adminapi.Condition(r.Why, true)))
		}
	}
	return cutText(strings.Join(parts, ", "), waitsForMax)
}

// oneReason is the sentence if all candidates have the same.
func oneReason(r *fsm.HoldReason) string {
	switch r.Why {
	case "":
		return "it is next"
	case fsm.WhyPrincipal:
		return "its principal holds as many slots as it may"
	case fsm.WhyDetached:
		return "its client has to come back: its edge's session ended"
	}
	switch r.Count {
	case 1:
		return string(r.Provider) + " " + adminapi.Condition(r.Why, false)
	case 2:
		return string(r.Provider) + " and another one " + adminapi.Condition(r.Why, true)
	}
	return fmt.Sprintf("%s and %d others %s", r.Provider, r.Count-1, adminapi.Condition(r.Why, true))
}

// cutText cuts a text at a character's border.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
