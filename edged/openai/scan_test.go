package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var scanSeeds = []string{
	`{"model":"a"}`, ` { "model" : "a" , "stream" : true } `, `{}`, `{"a":[[],{},[{}]]}`, `{"m\u006fdel":"x"}`,
	`{"model":"a","model":"b"}`, `{"n":-0.5e+3,"z":0,"t":[true,false,null]}`, `{"s":"\ud83d\ude00\n\\\"é漢😀"}`,
	`{"a":01}`, `{"a":1.}`, `{"a":"` + "\x01" + `"}`, `{"a":1}x`, `{"a":tru}`, `{"a"}`, `{,}`, `{"a":1,}`, `[1]`, ``, `"x"`,
	`{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":[1,2}`, `{"a":{"b":1]}`, `{"a":-}`, `{"a":1e}`, "{\"a\":\"\xff\xfe\"}", "\ufeff{}",
	`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
}

// The scanner must agree with encoding/json on what is valid, and on which member counts.
func FuzzScanAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { compareScan(t, b) })
}

func compareScan(t *testing.T, b []byte) {
	t.Helper()
	var s scanner
	err := s.scan(b)
	valid := json.Valid(b)
	trimmed := bytes.TrimLeft(b, " \t\r\n")
	object := len(trimmed) > 0 && trimmed[0] == '{'
	if errors.Is(err, errTooMany) || errors.Is(err, errCase) {
		return
	}
	if want := valid && object; (err == nil) != want {
		t.Fatalf("%q: valid=%v object=%v, but scan says %v", b, valid, object, err)
	}
	if err != nil {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for dec.More() {
		k, _ := dec.Token()
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if keyOf([]byte(k.(string))) != keyNone {
			want = append(want, string(v))
		}
	}
	var got []string
	for _, m := range s.members {
		got = append(got, string(b[m.from:m.to]))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%q: members %q, want %q", b, got, want)
	}
}

func TestScanAgreesWithEncodingJSONOnMutations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30000 {
		b := []byte(scanSeeds[r.IntN(len(scanSeeds))])
		for range r.IntN(4) {
			if len(b) == 0 {
				break
			}
			at := r.IntN(len(b))
			switch r.IntN(3) {
			case 0:
				b[at] = []byte(`{}[]",:\u019.eE-tfn ` + "\x00\n\xc3")[r.IntN(22)]
			case 1:
				b = append(b[:at], b[at+1:]...)
			default:
				b = append(b[:at:at], append([]byte(scanSeeds[r.IntN(len(scanSeeds))]), b[at:]...)...)
			}
		}
		compareScan(t, b)
	}
}

func TestScanDepthIsBoundedAsInEncodingJSON(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, depthMax - 1, depthMax, depthMax + 1, 3 * depthMax} {
		compareScan(t, []byte(`{"a":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`))
		compareScan(t, []byte(`{"a":`+strings.Repeat(`{"b":`, n)+"1"+strings.Repeat("}", n)+`}`))
	}
}

func TestScanNamesWhereItStopped(t *testing.T) {
	var s scanner
	if err := s.scan([]byte(`{"model": "a", "x": tru}`)); err == nil || err.Error() != "invalid JSON at byte 20: expected true" {
		t.Error(err)
	}
	if err := s.scan([]byte(`{"a":1` + strings.Repeat(`,"stop":1`, membersMax+1) + `}`)); !errors.Is(err, errTooMany) {
		t.Error(err)
	}
}

func estimateOf(t *testing.T, body string) int64 {
	t.Helper()
	var s scanner
	if err := s.scan([]byte(body)); err != nil {
		t.Fatal(err)
	}
	return s.text.tokens()
}

func TestEstimateFollowsTheText(t *testing.T) {
	chat := func(text string) string {
		b, _ := json.Marshal(text)
		return `{"model":"` + strings.Repeat("m", 500) + `","messages":[{"role":"user","content":` + string(b) + `}]}`
	}
	cases := []struct {
		name, body string
		from, to   int64
	}{
		{"english", chat(strings.Repeat("hello world ", 1000)), 2500, 3500},
		{"russian", chat(strings.Repeat("привет мир ", 1000)), 3500, 5500},
		{"chinese", chat(strings.Repeat("你好世界", 1000)), 2000, 4000},
		{"escaped chinese", `{"prompt":"` + strings.Repeat(`\u4f60`, 4000) + `"}`, 2000, 4000},
		{"token ids", `{"input":[[1,2,3],[4,5,6]]}`, 6, 6},
		{"nothing", `{"model":"x","user":"` + strings.Repeat("u", 9999) + `"}`, 0, 0},
		{"tools", `{"tools":[{"type":"function","function":{"name":"` + strings.Repeat("n", 400) + `"}}]}`, 100, 120},
		// Fault: base64 of a picture counted as text made each one a long request.
		{"picture", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			pngHead + strings.Repeat("A", 4_000_000) + `"}}]}]}`, 1337, 1352}, // 1024 × 1024
		{"picture by link", `{"messages":[{"content":[{"image_url":{"url":"https://x/y.png"}}]}]}`, remoteImage, remoteImage + 4},
		{"sound", `{"messages":[{"content":[{"input_audio":{"data":"` + strings.Repeat("A", 150000) + `"}}]}]}`, 100, 110},
	}
	for _, c := range cases {
		if got := estimateOf(t, c.body); got < c.from || got > c.to {
			t.Errorf("%s: %d tokens, want %d to %d", c.name, got, c.from, c.to)
		}
	}
}

// pngHead is the beginning of a PNG of 1024 × 1024 pixels, in base64.
const pngHead = "iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAIAAADwf7zU"

func TestScaleLearnsWithinBounds(t *testing.T) {
	var s scale
	if s.apply(1000) != 1000 {
		t.Error("an untaught scale changes the estimate")
	}
	s.learn(10, 100) // too short to tell
	if s.apply(1000) != 1000 {
		t.Error("learnt from a short prompt")
	}
	for range 200 {
		s.learn(1000, 1500)
	}
	if got := s.apply(1000); got < 1490 || got > 1510 {
		t.Errorf("1000 became %d, want about 1500", got)
	}
	for range 200 {
		s.learn(1000, 1_000_000)
	}
	if got := s.apply(1000); got > 1000*scaleMax {
		t.Errorf("1000 became %d", got)
	}
}

func BenchmarkScan20MiB(b *testing.B) {
	body := []byte(`{"model":"a","messages":[{"role":"user","content":"` + strings.Repeat("The quick brown fox, \\n", 20<<20/24) + `"}]}`)
	b.SetBytes(int64(len(body)))
	var s scanner
	for b.Loop() {
		if err := s.scan(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScanSmall(b *testing.B) {
	body := []byte(`{"model":"ornith:35b","stream":true,"messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"Tell me a story about a fox."}],"max_tokens":64,"temperature":0.2}`)
	var s scanner
	b.ReportAllocs()
	for b.Loop() {
		if err := s.scan(body); err != nil {
			b.Fatal(err)
		}
	}
}

// Backends that are written in Go take "Model" for "model", and of two the last: such a key would choose a model that was
// never admitted, and lift the caps of a policy.
func TestKeysThatOnlySomeBackendsReadAreRefused(t *testing.T) {
	for _, name := range []string{"Model", "MODEL", `m\u006fdeL`, "Max_Tokens", "max_to\u212aens", "me\u017fsages", "tool\u017f", "Stream"} {
		b := []byte(`{"model":"a","` + name + `":"b"}`)
		var taken struct {
			Model, Messages, Tools, Stream any
			MaxTokens                      any `json:"max_tokens"`
		}
		if err := json.Unmarshal(b, &taken); err != nil || taken.Model != "b" && taken.MaxTokens == nil && taken.Messages == nil && taken.Tools == nil && taken.Stream == nil {
			t.Fatalf("encoding/json does not take %q for anything: %v", name, err)
		}
		var s scanner
		if err := s.scan(b); !errors.Is(err, errCase) {
			t.Errorf("%s: %v", b, err)
		}
	}
	for _, name := range []string{"models", "User", "N", "Ünder", strings.Repeat("M", 100), ""} {
		var s scanner
		if err := s.scan([]byte(`{"model":"a","` + name + `":"b"}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
