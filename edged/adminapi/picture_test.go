package adminapi_test

import (
	"errors"
	"testing"

	"iop/edged/adminapi"
)

// A frame that does not follow the last one changes nothing; the next whole makes all good again.
func TestGapLeavesThePictureAsItWas(t *testing.T) {
	var p adminapi.Picture
	late := adminapi.Frame{Seq: 7, Waiters: []adminapi.LiveWaiter{{Request: "late"}}}
	if err := p.Apply(&late); !errors.Is(err, adminapi.ErrGap) {
		t.Errorf("before any whole: %v", err)
	}
	first := adminapi.Frame{Seq: 5, Whole: true, Waiters: []adminapi.LiveWaiter{{Request: "a", Place: 1}}}
	next := adminapi.Frame{Seq: 6, WaitersGone: []string{"a"}, Waiters: []adminapi.LiveWaiter{{Request: "b", Place: 2}}}
	for _, f := range []*adminapi.Frame{&first, &next} {
		if err := p.Apply(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, seq := range []uint64{6, 8, 0} {
		late.Seq = seq
		if err := p.Apply(&late); !errors.Is(err, adminapi.ErrGap) {
			t.Errorf("frame %d after 6: %v", seq, err)
		}
	}
	if w := p.Waiters(); len(w) != 1 || w[0].Request != "b" || p.Head.Seq != 6 {
		t.Errorf("after gaps: %+v, %d", w, p.Head.Seq)
	}
	first.Seq = 20
	if err := p.Apply(&first); err != nil || len(p.Waiters()) != 1 || p.Waiters()[0].Request != "a" {
		t.Errorf("a whole: %v, %+v", err, p.Waiters())
	}
}
