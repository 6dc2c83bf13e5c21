package spans

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for s, want := range map[string]string{
		good:                                   good,
		strings.Replace(good, "-01", "-00", 1): "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		strings.Replace(good, "-01", "-03", 1): good, // the random flag is not ours to pass on
		"cc" + good[2:]:                        good,
		"cc" + good[2:] + "-what-comes":        good,
		"cc" + good[2:] + ".what-comes":        "",
		good + "-x":                            "",
		"ff" + good[2:]:                        "",
		strings.ToUpper(good):                  "",
		good[:54]:                              "",
		"":                                     "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01": "",
	} {
		c, ok := Parse(s)
		if ok != (want != "") || c.String() != want {
			t.Errorf("%q: %v %q, want %q", s, ok, c.String(), want)
		}
	}
}

// A tracer that is off, and a caller that has decided against, cost no allocation; one that the ratio leaves out costs
// the traceparent that says so.
func TestWhatIsNotRecordedIsFree(t *testing.T) {
	const not = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	at := time.Now()
	var off *Tracer
	none := &Tracer{}
	for _, k := range []struct {
		name   string
		t      *Tracer
		parent string
		most   float64
	}{{"off", off, not, 0}, {"not by the caller", none, not, 0}, {"not by the ratio", none, "", 1}} {
		n := testing.AllocsPerRun(100, func() {
			s, passOn := k.t.Start("a", Server, at, k.parent, nil)
			if s.Recording() || s.Traceparent() != "" || s.TraceID() != "" || k.t != nil && passOn == "" {
				t.Fatal("it is recorded")
			}
			s.Child("b", Client, at).End(at)
			s.Fail("x")
			s.End(at)
		})
		if n > k.most {
			t.Errorf("%s: %v allocations, at most %v", k.name, n, k.most)
		}
	}
}

func TestStateOf(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if StateOf(good, []string{"a=1"}) == nil || StateOf("", []string{"a=1"}) != nil || StateOf(good, nil) != nil {
		t.Error("a tracestate goes with a traceparent, or not at all")
	}
	if joinState([]string{"a=1", "b=2"}) != "a=1,b=2" || joinState([]string{strings.Repeat("x", 513)}) != "" || joinState(nil) != "" {
		t.Error("joinState")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x")
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := Parse(s)
		if ok != c.Valid() {
			t.Fatalf("%q: %v, %+v", s, ok, c)
		}
		if again, ok2 := Parse(c.String()); ok && (!ok2 || again.Trace != c.Trace || again.Span != c.Span || again.Sampled() != c.Sampled()) {
			t.Fatalf("%q becomes %q", s, c.String())
		}
	})
}
