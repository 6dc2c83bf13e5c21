package openai

import "iop/fsm"

// offers tells whether any provider can do all of this.
func (c *catalog) offers(needs fsm.Needs) bool {
	for _, p := range c.providers {
		if p.Can&needs == needs {
			return true
		}
	}
	return false
}
