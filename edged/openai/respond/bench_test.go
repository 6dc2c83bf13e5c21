package respond

import (
	"strconv"
	"strings"
	"testing"
)

// BenchmarkStream is the translation of a streamed answer of 64 pieces, which come one by one, and the bytes of its events.
func BenchmarkStream(b *testing.B) {
	q, problem := Read([]byte(`{"model":"m","input":"x","stream":true}`), fixed)
	if problem != nil {
		b.Fatal(problem)
	}
	var pieces [][]byte
	for i := range 64 {
		pieces = append(pieces, []byte(strings.Join([]string{
			`data: {"id":"run-1","object":"chat.completion.chunk","created":1,"model":"served/p1",`,
			`"choices":[{"index":0,"delta":{"content":" ` + strconv.Itoa(i) + `"},"finish_reason":null}]}`, "\n\n",
		}, "")))
	}
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		r, n := NewRun(q, "m", 1), int64(0)
		out = out[:0]
		say := func(list []Event) {
			for i := range list {
				out = list[i].Append(out, n)
				n++
			}
		}
		say(r.Open(false))
		r.Begin(true)
		for _, p := range pieces {
			say(r.Write(p))
		}
		say(r.Write([]byte("data: [DONE]\n\n")))
		say(r.End(2))
	}
}
