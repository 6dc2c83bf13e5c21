package cli

import "iop/noded/adapter/chat"

// reply is what an output has told so far. The dialects fill it; text goes on at once.
type reply struct {
	out     *chat.Writer
	stop    stopper
	spoke   bool // some text was told
	parted  bool // the next text begins a paragraph
	usage   *chat.Usage
	finish  string // "" is stop
	trouble string // the command's own last word on what went wrong
	failed  bool   // it says that this was the end of it
}

// text passes a piece of the answer on. It returns errStopFound at a stop sequence, and else only what the client's end
// returns.
func (r *reply) text(s string) error {
	if s == "" {
		return nil
	}
	if r.parted {
		r.parted, s = false, "\n\n"+s
	}
	r.spoke = true
	s, found := r.stop.take(s)
	if err := r.out.Text(s); err != nil {
		return err
	}
	if found {
		return errStopFound
	}
	return nil
}

// paragraph begins another text of the same answer: an agent says something, works, and says something again. The blank
// line between them comes with the text.
func (r *reply) paragraph() { r.parted = r.spoke }

// rest passes on what was held back for a stop sequence that did not come.
func (r *reply) rest() error { return r.out.Text(r.stop.rest()) }
