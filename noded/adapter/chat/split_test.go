package chat

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Taking apart without copying gives what encoding/json gives.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, ` { "a" : 1 , "b\"\\" : "x\\\"y\\\\" , "a":[ {"}":"]"} , null ] , "é\ud83d\ude00": -1.5e+3}`, `[ [ ] , { } , "\\" , true,false ]`, `{"":{"":""}}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.TrimLeft(b, " \t\r\n")
		if !json.Valid(b) {
			return
		}
		switch b[0] {
		case '{':
			var want map[string]json.RawMessage
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			got := members(b)
			if len(got) != len(want) {
				t.Fatalf("%d members, want %d, of %s", len(got), len(want), b)
			}
			for name, v := range want {
				if !bytes.Equal(got[name], v) {
					t.Fatalf("%q is %s, want %s", name, got[name], v)
				}
			}
		case '[':
			var want []json.RawMessage
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			got := elements(b)
			if len(got) != len(want) {
				t.Fatalf("%d elements, want %d, of %s", len(got), len(want), b)
			}
			for i, v := range want {
				if !bytes.Equal(got[i], v) {
					t.Fatalf("%d is %s, want %s", i, got[i], v)
				}
			}
		}
	})
}
