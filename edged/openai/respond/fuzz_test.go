package respond

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzStream: whatever a backend sends and wherever the network cuts it, the events are the same, each is JSON with the
// next number, and only an answer that says that it has ended is completed.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
		"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"a\",\"content\":\"b\",\"refusal\":\"c\"},\"finish_reason\":\"length\"}]}\r\rdata: {\"error\":\"x\"}\r\r",
		": c\ndata:{\"choices\":[],\ndata:\"usage\":{\"prompt_tokens\":1}}\n\n", "data: {bad\n\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	q, p := Read([]byte(`{"model":"m","input":"x","tools":[{"type":"custom","name":"f"}]}`), fixed)
	if p != nil {
		f.Fatal(p)
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		whole, r := told(q, true, in)
		if cut, _ := told(q, true, in, int(size)+1); cut != whole {
			t.Fatalf("cut: %s\nwhole: %s", cut, whole)
		}
		last := ""
		for n, e := range strings.Split(strings.TrimSuffix(whole, "\n\n"), "\n\n") {
			var got struct {
				Type   string
				Number int `json:"sequence_number"`
			}
			_, data, _ := strings.Cut(e, "\ndata: ")
			if err := json.Unmarshal([]byte(data), &got); err != nil || got.Number != n {
				t.Fatalf("event %d: %v: %s", n, err, e)
			}
			last = got.Type
		}
		if last != finalEvent(r.Status()) || !r.Status().Final() {
			t.Fatalf("ends with %s in state %s", last, r.Status())
		}
		if r.Status() == Completed && !bytes.Contains(in, []byte("DONE")) && !bytes.Contains(bytes.ToLower(in), []byte(`finish_reason`)) &&
			!bytes.Contains(in, []byte(`\u`)) {
			t.Fatalf("%q is completed", in)
		}
	})
}

// FuzzRead: whatever a client sends, what goes to the backend is JSON.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":[{"role":"user","content":"x"}],"tools":[{"type":"custom","name":"f"}],"x":1}`))
	f.Add([]byte(`{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{}}},"reasoning":{"effort":"low"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q, p := Read(body, fixed)
		if p != nil {
			return
		}
		q.fields["model"] = json.RawMessage(`"m"`) // the caller has seen to it
		b, p := q.Chat(nil, true)
		if p == nil && !json.Valid(b) {
			t.Fatalf("%s became %s", body, b)
		}
		r := NewRun(q, "m", 1)
		if o := r.Object(); !json.Valid(o) {
			t.Fatalf("%s became %s", body, o)
		}
	})
}
