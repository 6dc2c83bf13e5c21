package pieces

import (
	"encoding/json"
	"reflect"
	"testing"
)

// What backends really send, and what is close to it and must not be read otherwise than encoding/json does.
func samples() []string {
	return []string{
		`{"id":"run-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":" 17"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}}`,
		`{"choices":[{"delta":{},"finish_reason":"stop","stop_reason":"END","index":0}]}`,
		`{"choices":[{"delta":{"reasoning_content":"hm","content":null}},{"index":1,"delta":null}]}`,
		`{"error":{"message":"x","code":500}}`, `{"error":null}`, `{"error":"broke"}`,
		`{"choices":[{"delta":{"content":"\u00e9\n"}}]}`, `{"choices":[{"delta":{"content":"é 🎈"}}]}`, "{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}",
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}`,
		`{"choices":[{"message":{"content":"whole"}}]}`, `{"Choices":[{"Delta":{"CONTENT":"x"}}]}`,
		`{"choices":[{"delta":{"content":"a","content":"b"}}]}`, `{"choices":[{"delta":{"content":"a"}}],"choices":[{"index":1}]}`,
		`{"choices":null,"usage":7}`, `{"choices":[null]}`, `{"choices":[{"index":12}]}`, `{"choices":[{"index":1.0}]}`, `{"choices":[{"index":-0}]}`,
		`{"x":[1,2.5e-3,-0,true,false,null,{"y":{}}],"choices":[ ] } `, `{"x":01}`, `{"x":1.}`, `{"x":1e}`, `{"x":-}`, `{"x":tru}`, `{"x"}`, `{,}`, `{"x":1,}`, `[]`, `null`, ``, `{} x`,
		"{\"choices\":[{\"delta\":{\"content\":\"\t\"}}]}", `{"choices":[{"delta":{"content":7}}]}`, `{"choices":[{"logprobs":{"content":[{"token":"a"}]},"delta":{"content":"a"}}]}`,
		`{"choices":[{"index":0 ,"delta" : { "content" : "a" } }]}`, `{"choiceſ":[{"index":3}]}`, `{"x":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}`,
	}
}

// agree reads the data both ways, once into a fresh chunk and once into one that held another.
func agree(t *testing.T, data string, used *Chunk) {
	t.Helper()
	var want Chunk
	wantErr := json.Unmarshal([]byte(data), &want)
	for _, c := range []*Chunk{new(Chunk), used} {
		err := Read([]byte(data), c)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, encoding/json says %v", data, err, wantErr)
		}
		if err != nil {
			continue
		}
		got := Chunk{Usage: c.Usage, Error: c.Error}
		for _, x := range c.Choices {
			x.room = nil
			got.Choices = append(got.Choices, x)
		}
		if len(want.Choices) == 0 {
			want.Choices = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: read %+v, encoding/json reads %+v", data, got, want)
		}
	}
}

func TestReadAgreesWithTheLibrary(t *testing.T) {
	used := new(Chunk)
	for _, s := range samples() {
		agree(t, s, used)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range samples() {
		f.Add(s, samples()[0])
	}
	f.Fuzz(func(t *testing.T, data, before string) {
		used := new(Chunk)
		_ = Read([]byte(before), used) // only so that there is something to be left over
		agree(t, data, used)
	})
}

// The plain piece is the one that is read a thousand times a second.
func TestPlainPiecesCostOneString(t *testing.T) {
	data, c := []byte(samples()[0]), new(Chunk)
	n := testing.AllocsPerRun(100, func() {
		if Read(data, c) != nil || c.Choices[0].Delta.Content != " 17" {
			t.Fatal("misread")
		}
	})
	if n > 2 {
		t.Errorf("%v allocations for a plain piece", n)
	}
}

func BenchmarkRead(b *testing.B) {
	data := []byte(samples()[0])
	b.Run("Read", func(b *testing.B) {
		b.ReportAllocs()
		c := new(Chunk)
		for b.Loop() {
			_ = Read(data, c)
		}
	})
	b.Run("Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var c Chunk
			_ = json.Unmarshal(data, &c)
		}
	})
}
