package admin_test

import (
	"strings"
	"testing"

	"iop/edged/adminapi"
	"iop/fsm"
)

// Fault: a reason that the machine has learned reaches operators as its bare code.
func TestEveryReasonHasWords(t *testing.T) {
	for _, why := range []string{
		"", fsm.WhyDisabled, fsm.WhyDraining, fsm.WhyDegraded, fsm.WhyOffline, fsm.WhyPending, fsm.WhyRecovering, fsm.WhyFull, fsm.WhyLongFull,
		fsm.WhyExcluded, fsm.WhyTooSmall, fsm.WhyIncapable, fsm.WhyDetached, fsm.WhyRemoved, fsm.WhyPrincipal,
	} {
		for _, several := range []bool{false, true} {
			if text := adminapi.Condition(why, several); strings.Contains(text, "("+why+")") {
				t.Errorf("%q has no words: %s", why, text)
			}
		}
		if adminapi.Needed(why, "p", "n", "") == why {
			t.Errorf("nothing is said of what %q needs", why)
		}
	}
}
