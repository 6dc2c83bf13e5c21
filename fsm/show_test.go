package fsm_test

import (
	"fmt"
	"strings"

	. "iop/fsm"
)

// show writes an entry for the message of a failed test.
func show(e *Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "entry %d term %d elapsed %d", e.Index, e.Term, e.Elapsed)
	for _, x := range e.Batches {
		fmt.Fprintf(&b, "\n  batch session %d seq %d ack %d sum %x", x.Session, x.Seq, x.AckBelow, x.Sum)
		for _, c := range x.Commands {
			fmt.Fprintf(&b, "\n    %T%+v", c, c)
		}
	}
	return strings.ReplaceAll(b.String(), "*fsm.", "")
}
