package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAnswer: whatever a backend sends and wherever the network cuts it, the answer is the same bytes; no more than a
// model's name is held back; and where the names are equal nothing is changed at all.
func FuzzAnswer(f *testing.F) {
	for _, c := range answerCases {
		in := strings.NewReplacer("@", quoted(servedName), "$", quoted(servedName)).Replace(c.in)
		f.Add(c.events, in, uint16(len(in)/2), uint16(7))
	}
	f.Fuzz(func(t *testing.T, events bool, in string, a, b uint16) {
		whole, _ := rewritten(events, in, servedName, keyName)
		from, to := int(a)%(len(in)+1), int(b)%(len(in)+1)
		cut, r := rewritten(events, in, servedName, keyName, min(from, to), max(from, to))
		if cut != whole {
			t.Fatalf("cut at %d and %d: %q\nwhole: %q", from, to, cut, whole)
		}
		if same, _ := rewritten(events, in, keyName, keyName, from); same != in {
			t.Fatalf("equal names: %q became %q", in, same)
		}
		r.reset(events, servedName, keyName)
		for i := range len(in) {
			r.write([]byte(in[i : i+1]))
			if most := 6*len(servedName) + 8; len(r.held) > most {
				t.Fatalf("%d bytes are held back, at most %d should be", len(r.held), most)
			}
		}
	})
}

// FuzzBody: a body that is read as a request stays JSON when the model is put in, and names the served model.
func FuzzBody(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x := &exchange{body: b, model: &model{}, route: &route{}}
		if x.scan.scan(b) != nil {
			return
		}
		x.plan()
		out := x.bodyFor(servedName)
		if !json.Valid(out) {
			t.Fatalf("%q became %q", b, out)
		}
		if limit := len(b) + len(x.edits)*(6*len(servedName)+2); len(out) > limit {
			t.Fatalf("%d bytes became %d", len(b), len(out))
		}
		var was, is map[string]json.RawMessage
		if json.Unmarshal(b, &was) != nil || json.Unmarshal(out, &is) != nil {
			return
		}
		for name, value := range was {
			if name != "model" && !bytes.Equal(value, is[name]) {
				t.Fatalf("%s changed from %s to %s", name, value, is[name])
			}
		}
	})
}
