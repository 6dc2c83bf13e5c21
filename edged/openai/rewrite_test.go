package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// rewritten feeds an answer in pieces that end at cuts.
func rewritten(events bool, in, served, key string, cuts ...int) (string, *reader) {
	r := &reader{}
	r.reset(events, served, key)
	var out []byte
	from := 0
	for _, c := range append(cuts, len(in)) {
		out = append(out, r.write([]byte(in[from:c]))...)
		from = c
	}
	return string(append(out, r.end()...)), r
}

const (
	servedName = `mlx/ornith "35b"`
	keyName    = `ornith:35b`
)

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// answerCases: @ stands for the served name, K for what becomes of it; $ for the served name, which stays.
var answerCases = []struct {
	name    string
	events  bool
	in      string
	in_, on int64 // counts, -1 = none
}{
	{"json", false, `{"id":"x","model":@,"choices":[{"model":$,"text":"héllo 漢字 😀 \"model\":\"mlx\" \\"}],"usage":{"prompt_tokens":12,"completion_tokens":0,"d":{"prompt_tokens":9}}}`, 12, 0},
	{"json spaced", false, "{ \"model\" :\t\n @ , \"usage\" : null } \n", -1, -1},
	{"json embedding", false, `{"object":"list","data":[{"embedding":[0.1,-2e5]}],"model":@,"usage":{"prompt_tokens":7,"total_tokens":7}}`, 7, -1},
	{"json other model", false, `{"model":"another-model-that-is-longer-than-the-served-name-could-ever-be-even-if-it-were-escaped-with-six-bytes-each-0123456789"}`, -1, -1},
	{"json escaped", false, `{"mod\u0065l":"keep","model":"mlx\/ornith \u002235b\u0022"}`, -1, -1},
	{"json model first and last", false, `{"model":@,"a":{"b":[1,2,{"model":$}]},"model":@}`, -1, -1},
	{"json number model", false, `{"model":12,"x":"model","y":["model",$]}`, -1, -1},
	{"json float count", false, `{"model":@,"usage":{"prompt_tokens":12.5,"completion_tokens":1e3}}`, -1, -1},
	{"array", false, `[{"model":$}]`, -1, -1},
	{"text", false, `"model":$`, -1, -1},
	{"truncated", false, `{"model":"mlx/orn`, -1, -1},
	{"sse", true, "data: {\"model\":@,\"choices\":[{\"delta\":{\"content\":\"é漢😀\"}}]}\n\ndata: {\"model\":@,\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":44}}\n\ndata: [DONE]\n\n", 3, 44},
	{"sse no space, crlf", true, "data:{\"model\":@}\r\n\r\ndata:{\"model\":@,\"usage\":{\"completion_tokens\":4}}\r\n\r\ndata:[DONE]\r\n\r\n", -1, 4},
	{"sse cr only", true, "data:{\"model\":@}\r\rdata: {\"model\":@}\r\r", -1, -1},
	{"sse comments and fields", true, ": {\"model\":$}\n\nevent: x\nid: 1\nretry: 5\nDATA: {\"model\":$}\ndata: {\"model\":@}\n\ndat: {\"model\":$}\ndatax: {\"model\":$}\n\n", -1, -1},
	{"sse several data lines", true, "data: {\"a\":1,\ndata: \"model\":\ndata: @,\n: between\ndata: \"usage\":{\"prompt_tokens\":5\ndata: }}\n\n", 5, -1},
	{"sse usage in every chunk", true, "data: {\"model\":@,\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\ndata: {\"model\":@,\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n", 5, 2},
	{"sse name cut by a line end", true, "data: {\"model\":\"mlx/\ndata: ornith \\\"35b\\\"\"}\n\ndata: {\"model\":@}\n\n", -1, -1},
	{"sse of messages", true, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[{\"model\":$}],\"model\":@,\"usage\":{\"cache_creation\":{\"input_tokens\":9},\"input_tokens\":12,\"output_tokens\":1},\"x\":{\"model\":$}}}\n\nevent: message_delta\ndata: {\"delta\":{\"model\":$},\"usage\":{\"output_tokens\":7}}\n\n", 12, 7},
	{"sse of responses", true, "data: {\"response\":{\"model\":@,\"usage\":null,\"output\":[{\"model\":$}]}}\n\ndata: {\"response\":{\"usage\":{\"input_tokens\":3,\"d\":{\"input_tokens\":8},\"output_tokens\":4},\"model\":@}}\n\n", 3, 4},
	{"sse open end", true, "data: {\"model\":@}\n\ndata: {\"model\":\"ml", -1, -1},
	{"sse not json", true, "data: hello \"model\":$\n\ndata: 17\n\ndata\n\ndata:\n\ndata: {\"model\":@}\n\n", -1, -1},
}

// Fault: frames and UTF-8 that the network cut came out changed. Whatever the cuts, the answer is the same bytes but
// for the model.
func TestAnswersCutAnywhereStayWhole(t *testing.T) {
	for _, c := range answerCases {
		in := strings.NewReplacer("@", quoted(servedName), "$", quoted(servedName)).Replace(c.in)
		want := strings.NewReplacer("@", quoted(keyName), "$", quoted(servedName)).Replace(c.in)
		if c.name == "json escaped" {
			want = `{"mod\u0065l":"keep","model":"ornith:35b"}`
		}
		check := func(cuts ...int) {
			t.Helper()
			got, r := rewritten(c.events, in, servedName, keyName, cuts...)
			if got != want {
				t.Fatalf("%s cut at %v:\n got %q\nwant %q", c.name, cuts, got, want)
			}
			if r.count.in != c.in_ || r.count.out != c.on {
				t.Fatalf("%s cut at %v: counts %v, want %d %d", c.name, cuts, r.count, c.in_, c.on)
			}
		}
		check()
		for i := range len(in) {
			check(i)
			for j := i; j < len(in); j++ {
				check(i, j)
			}
		}
		every := make([]int, len(in))
		for i := range every {
			every[i] = i
		}
		check(every...)
	}
}

func TestSameNameIsPassedWithoutACopy(t *testing.T) {
	r := &reader{}
	r.reset(true, "m", "m")
	p := []byte("data: {\"model\":\"m\",\"usage\":{\"prompt_tokens\":1}}\n\n")
	if out := r.write(p); &out[0] != &p[0] || len(out) != len(p) {
		t.Error("copied")
	}
	if r.count.in != 1 {
		t.Error("usage was not seen")
	}
}

// No more than a model's name is held back, and never when none is arriving.
func TestHoldsBackNoMoreThanAName(t *testing.T) {
	r := &reader{}
	r.reset(false, "abc", "xyz")
	in := `{"model":"` + strings.Repeat("a", 1000) + `","x":1}`
	sent := 0
	for i := range len(in) {
		sent += len(r.write([]byte{in[i]}))
		if held := i + 1 - sent; held > 6*len("abc")+2 {
			t.Fatalf("%d bytes held at %d", held, i)
		}
	}
	if sent != len(in) {
		t.Errorf("%d of %d sent", sent, len(in))
	}
}

// Random documents against a plain decoder: everything but the top-level model is untouched.
func TestRewriteAgainstDecoder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 9))
	var value func(depth int) string
	value = func(depth int) string {
		switch n := rnd.IntN(9); {
		case n < 2 && depth < 4:
			var b strings.Builder
			for i := range rnd.IntN(4) {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%s:%s", quoted([]string{"model", "usage", "prompt_tokens", `a"b\`, "é"}[rnd.IntN(5)]), value(depth+1))
			}
			return "{" + b.String() + "}"
		case n < 4 && depth < 4:
			return "[" + value(depth+1) + "," + value(depth+1) + "]"
		default:
			return []string{"1", "-2.5", "true", "null", quoted("served"), quoted(`x\"}{`), quoted("漢")}[rnd.IntN(7)]
		}
	}
	for range 3000 {
		parts := []string{}
		for range rnd.IntN(5) + 1 {
			parts = append(parts, quoted([]string{"model", "usage", "z", "choices"}[rnd.IntN(4)]), value(1))
		}
		build := func(name string) string {
			var b strings.Builder
			for i := 0; i < len(parts); i += 2 {
				v := parts[i+1]
				if parts[i] == `"model"` && v == `"served"` {
					v = name
				}
				fmt.Fprintf(&b, ",%s : %s", parts[i], v)
			}
			return "{" + b.String()[1:] + "}"
		}
		in, want := build(`"served"`), build(`"key"`)
		cuts := []int{rnd.IntN(len(in)), len(in)}
		if got, _ := rewritten(false, in, "served", "key", cuts...); got != want {
			t.Fatalf("cut %v of %s\n got %s\nwant %s", cuts, in, got, want)
		}
	}
}

func BenchmarkReadStream(b *testing.B) {
	p := []byte("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"served-name\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" hello\"},\"finish_reason\":null}]}\n\n")
	for _, same := range []bool{true, false} {
		b.Run(fmt.Sprint("same=", same), func(b *testing.B) {
			r := &reader{}
			key := "key"
			if same {
				key = "served-name"
			}
			r.reset(true, "served-name", key)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				r.write(p)
			}
		})
	}
}

func TestQuoting(t *testing.T) {
	for _, s := range []string{"", "a", `a"b\c/d`, "\x00\x1f\n", "é漢😀", "\xff"} {
		var back string
		b := appendQuoted(nil, s)
		if err := json.Unmarshal(b, &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q became %s: %v", s, b, err)
		}
	}
	if !bytes.Equal(appendQuoted(nil, "a/b:c"), []byte(`"a/b:c"`)) {
		t.Error("escapes what needs none")
	}
}
