package wire

import (
	"fmt"
	"slices"
	"testing"

	"iop/fsm"
	"iop/noded/edgelink"
)

// A node hears of its drain over each of its links, so also if it has none to the edge that was asked.
func TestEveryEdgeTellsItsNodesOfADrain(t *testing.T) {
	w := newTwo(t)
	heard := make(chan string, 8)
	listen := func(link string) func(*edgelink.Options) {
		return func(o *edgelink.Options) {
			o.Runs = w.runs
			o.Drained = func(provider string, on bool) { heard <- fmt.Sprint(link, " ", provider, " ", on) }
		}
	}
	startNode(t, w.e1.address, "n1", &hands{run: w.h.run}, listen("first"))
	w.linked(t, 1)
	startNode(t, w.e2.address, "n1", &hands{run: w.h.run}, listen("second"))
	w.linked(t, 2)
	for _, c := range []struct {
		drain fsm.Drain
		want  string
	}{
		{fsm.Drain{Node: "n1", On: true}, "  true"},
		{fsm.Drain{Provider: "p-n1", On: true}, " p-n1 true"},
		{fsm.Drain{Node: "n1"}, "  false"},
	} {
		w.c.apply(0, &c.drain)
		got := []string{<-heard, <-heard}
		if slices.Sort(got); !slices.Equal(got, []string{"first" + c.want, "second" + c.want}) {
			t.Errorf("after %+v: %q", c.drain, got)
		}
	}
}
