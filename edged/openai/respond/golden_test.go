package respond

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each archive in testdata has a request, the items that came before it (history, may be absent) and a chat answer: a
// stream, or a whole one (answer.json). Golden are the chat request and the events: go test -update.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { golden(t, name) })
	}
}

func golden(t *testing.T, name string) {
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	a := txtar.Parse(raw)
	in := map[string][]byte{}
	for _, f := range a.Files {
		in[f.Name] = f.Data
	}
	out := map[string]string{}
	for k, v := range translated(t, in) {
		out[k] = v
	}
	var want []txtar.File
	for _, f := range a.Files {
		switch f.Name {
		case "chat.json", "events", "problem":
		default:
			want = append(want, f)
		}
	}
	for _, k := range []string{"chat.json", "problem", "events"} {
		if out[k] == "" {
			continue
		}
		want = append(want, txtar.File{Name: k, Data: []byte(out[k])})
		if d := cmp.Diff(string(in[k]), out[k]); d != "" && !*update {
			t.Errorf("%s (-golden +now):\n%s", k, d)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(&txtar.Archive{Comment: a.Comment, Files: want}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const testID = "resp_0123456789abcdef0123456789abcdef"

func fixed(bool) string { return testID }

func translated(t *testing.T, in map[string][]byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	q, p := Read(in["request.json"], fixed)
	var history []json.RawMessage
	if h := in["history.json"]; h != nil {
		if err := json.Unmarshal(h, &history); err != nil {
			t.Fatal(err)
		}
	}
	answer, stream := in["answer"]
	var chat []byte
	if p == nil {
		chat, p = q.Chat(history, stream)
	}
	if p != nil {
		out["problem"] = p.Code + " " + p.Param + "\n" + p.Message + "\n"
		return out
	}
	out["chat.json"] = pretty(t, chat)
	if in["answer.json"] != nil {
		answer = in["answer.json"]
	} else if !stream {
		return out
	}
	events, _ := told(q, stream, answer)
	out["events"] = events
	// However the network cuts it, the events are the same.
	for _, size := range []int{1, 2, 3, 7, 64} {
		if cut, _ := told(q, stream, answer, size); cut != events {
			t.Errorf("in pieces of %d bytes:\n%s", size, cmp.Diff(events, cut))
		}
	}
	return out
}

// told gives all events of an answer that comes in pieces.
func told(q *Request, stream bool, answer []byte, size ...int) (string, *Run) {
	r := NewRun(q, q.Model, 1700000000)
	var b []byte
	n := int64(0)
	say := func(list []Event) {
		for i := range list {
			b = list[i].Append(b, n)
			n++
		}
	}
	say(r.Open(false))
	r.Begin(stream)
	step := len(answer)
	if len(size) > 0 {
		step = size[0]
	}
	for len(answer) > 0 {
		k := min(step, len(answer))
		say(r.Write(answer[:k]))
		answer = answer[k:]
	}
	say(r.End(1700000009))
	return string(b), r
}

func pretty(t *testing.T, raw []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", " "); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return b.String() + "\n"
}
