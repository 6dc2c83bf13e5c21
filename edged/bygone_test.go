package edged

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// told is the whole history of the configuration.
func (r *running) told() []adminapi.ConfigRevision {
	r.t.Helper()
	list, whole, err := r.fresh.past.list(r.t.Context())
	if err != nil || !whole {
		r.t.Fatalf("history: whole=%t, %v", whole, err)
	}
	return list
}

// An edge that starts again tells the same history, whoever asked before.
func TestHistoryOutlivesTheEdge(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, newFile())
	f := newFile()
	f.queue = 9
	r.write(f)
	r.want(adminapi.RefreshRequest{}, "applied", 2)
	between := r.told() // what comes later is added to it
	f.capacity = 5
	r.write(f)
	r.want(adminapi.RefreshRequest{}, "applied", 3)
	before := r.told()
	if diff := cmp.Diff(between, before[1:]); diff != "" {
		t.Errorf("after one more:\n%s", diff)
	}
	for i, want := range []string{"3 refresh e1 1", "2 refresh e1 1", "1 start e1 0"} {
		x := &before[i]
		if got := fmt.Sprint(x.Revision, " ", x.Source, " ", x.Edge, " ", len(x.Changes)); got != want || x.Time.IsZero() {
			t.Errorf("%s, want %s", got, want)
		}
	}
	r.stop()
	f.queue = 10
	r = start(t, dir, f)
	after := r.told()
	if len(after) != 4 || after[0].Source != "start" || after[0].Revision != 4 || len(after[0].Changes) != 1 || !after[0].Time.After(before[0].Time) {
		t.Fatalf("%+v", after)
	}
	if diff := cmp.Diff(before, after[1:]); diff != "" {
		t.Errorf("after a start:\n%s", diff)
	}
	if text, ok := r.fresh.past.document(t.Context(), 2); !ok || text == nil {
		t.Error("the document of a revision from before the start is not told")
	}
	if got := r.fresh.past.since(); !got.Equal(after[0].Time) {
		t.Errorf("in effect since %s, want %s", got, after[0].Time)
	}
}

// offered is an entry of a log. The document stands for all of a configuration.
func offered(index uint64, expected fsm.Revision, document string) storage.Applied {
	return storage.Applied{Index: index, Command: &fsm.ApplyConfig{Document: []byte(document), Expected: expected, Edge: "e"}}
}

func forced(index uint64, document string) storage.Applied {
	a := offered(index, 0, document)
	a.Command.Force = true
	return a
}

// What can be told of a log depends on where it begins.
func TestHistoryOfALogThatWasCut(t *testing.T) {
	whole := []storage.Applied{
		forced(3, "a"), forced(4, "a"), offered(9, 1, "b"), offered(9, 1, "c"), offered(12, 2, "d"), forced(20, "e"), forced(21, "e"), offered(30, 4, "f"), offered(33, 5, "f"),
	}
	told := []string{"1 start 3", "2 refresh 9", "3 refresh 12", "4 start 20", "5 refresh 30"}
	for cut, want := range map[int][]string{
		0: told,
		1: append([]string{"1 earlier 4"}, told[1:]...),
		// 2 and 3: of two that were offered at the same moment, it can't be told which one was refused.
		4: told[2:],
		5: {"4 earlier 20", "5 refresh 30"},
		6: {"4 earlier 21", "5 refresh 30"},
		7: told[4:],
		8: {"5 earlier 33"},
		9: nil,
	} {
		s := &search{now: settled{revision: 5, document: []byte("f"), index: 40}, from: 2, offers: slices.Clone(whole[cut:])}
		if cut == 0 {
			s.from = 1
		}
		var got []string
		for _, x := range s.tell(nil) {
			got = append(got, fmt.Sprint(x.Revision, " ", x.Source, " ", x.Index))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("cut before offer %d:\n%s", cut, diff)
		}
	}
}
