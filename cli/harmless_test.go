package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// TestOutputCantSteerATerminal: JSON, tables and errors with texts that a client chose.
func TestOutputCantSteerATerminal(t *testing.T) {
	t.Parallel()
	hostile := "a\x1b[2J\u009b2J\u0085\x7f\u202ekcatta\u200b\U000e0041\x00 模型"
	text, err := jsonText(map[string]string{"request": hostile})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]string
	if err := json.Unmarshal(text, &back); err != nil || back["request"] != hostile {
		t.Errorf("reads back as %q (%v): %s", back["request"], err, text)
	}
	p := &page{color: true}
	p.table(&table{columns: []column{{name: "REQUEST"}}, rows: [][]cell{cells(hostile), cells(cell{hostile, paintBad})}})
	p.fields([2]string{hostile, hostile})
	p.line("%s", hostile)
	shown := strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(p.text.String()) // our own
	var said strings.Builder
	report(&said, &faultError{code: 1, err: &faultError{err: errEnough, cure: hostile}, cure: hostile})
	for name, out := range map[string]string{"JSON": string(text), "table": shown, "error": said.String()} {
		for _, r := range out {
			if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) {
				t.Errorf("%s has %q: %q", name, r, out)
			}
		}
		if !strings.Contains(out, "模型") {
			t.Errorf("%s lost what is harmless: %q", name, out)
		}
	}
}
