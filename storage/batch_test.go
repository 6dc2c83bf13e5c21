package storage

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"iop/fsm"
)

func word(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.Admit:
		return "admit:" + string(c.Request)
	case *fsm.Cancel:
		return "cancel:" + string(c.Request)
	case *fsm.Release:
		return fmt.Sprint("release:", c.Lease)
	case *fsm.LinkLost:
		return "lost"
	case *fsm.NodeReady:
		return "ready"
	}
	return fmt.Sprintf("%T", c)
}

func commandOf(word string) fsm.Command {
	kind, arg, _ := strings.Cut(word, ":")
	switch kind {
	case "admit":
		return admit(arg)
	case "cancel":
		return &fsm.Cancel{Request: fsm.RequestID(arg)}
	case "release":
		var n uint64
		_, _ = fmt.Sscan(arg, &n)
		return &fsm.Release{Lease: fsm.LeaseID(n)}
	case "lost":
		return &fsm.LinkLost{Node: "n", Generation: 1}
	}
	return &fsm.NodeReady{Node: "n", Generation: 1}
}

// ordered returns the words in the order in which the machine gets them.
func ordered(t interface{ Fatal(...any) }, words []string) []string {
	cmds := make([]fsm.Command, len(words))
	for i, w := range words {
		cmds[i] = commandOf(w)
	}
	var d decoder
	e, err := d.entry(encode(entryOf(cmds...)))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range e.Batches[0].Commands {
		out = append(out, word(c))
	}
	return out
}

func TestOrderInsideABatch(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"capacity comes back before it is asked for", "admit:a release:1 admit:b release:2", "release:1 release:2 admit:a admit:b"},
		{"a link is ready before requests", "admit:a ready", "ready admit:a"},
		{"a release stays before the loss of its link", "release:1 lost release:2", "release:1 lost release:2"},
		{"a cancel goes behind its admission", "admit:a cancel:a", "admit:a cancel:a"},
		{"a cancel of an earlier one goes first", "admit:a cancel:other", "cancel:other admit:a"},
		{"a retry after a cancel", "cancel:a admit:a", "cancel:a admit:a"},
		{"a retry and its cancel", "cancel:a admit:a cancel:a admit:a", "cancel:a admit:a cancel:a admit:a"},
		{"a release stays behind the cancel of its request", "admit:a cancel:a release:7", "admit:a cancel:a release:7"},
		{"what came before such a cancel still goes first", "admit:a release:1 cancel:a release:2", "release:1 admit:a cancel:a release:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(ordered(t, strings.Fields(c.in)), " "); got != c.out {
				t.Errorf("%s\nbecame %s\nwant   %s", c.in, got, c.out)
			}
		})
	}
}

// TestNothingOvertakesItsOwn: whatever is proposed, what was sent because of something earlier stays behind it.
func TestNothingOvertakesItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]string{"a", "b", "c"})
		in := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0, 1:
				return "admit:" + ids.Draw(t, "id")
			case 2:
				return "cancel:" + ids.Draw(t, "id")
			case 3:
				return fmt.Sprint("release:", rapid.IntRange(1, 9).Draw(t, "lease"))
			}
			return "lost"
		}), 0, 12).Draw(t, "commands")
		out := ordered(t, in)
		// Admissions and cancels of one request keep their order; so does everything that is no admission.
		for _, keep := range []func(string) bool{
			func(w string) bool { return strings.HasSuffix(w, ":a") },
			func(w string) bool { return strings.HasSuffix(w, ":b") },
			func(w string) bool { return strings.HasPrefix(w, "admit") },
			func(w string) bool { return !strings.HasPrefix(w, "admit") },
		} {
			if got, want := strings.Join(only(out, keep), " "), strings.Join(only(in, keep), " "); got != want {
				t.Fatalf("%v became %v: %q instead of %q", in, out, got, want)
			}
		}
	})
}

func only(words []string, keep func(string) bool) []string {
	var out []string
	for _, w := range words {
		if keep(w) {
			out = append(out, w)
		}
	}
	return out
}

func TestNameSetNeverSaysNoWrongly(t *testing.T) {
	var s nameSet
	for i := range 5000 {
		s.add(fmt.Sprint("name", i))
	}
	for i := range 5000 {
		if !s.has(fmt.Sprint("name", i)) {
			t.Fatal(i)
		}
	}
	var empty nameSet
	if empty.has("name") {
		t.Error("the empty set has something")
	}
}
