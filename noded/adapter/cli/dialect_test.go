//go:build unix

package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"iop/noded/adapter"
	"iop/noded/adapter/cli"
)

const madrid = "The capital of Spain is Madrid — café."

// The recordings in testdata are what codex 0.171.0, claude 2.1.332 and gemini 0.61.0 have written, with a model that gave
// that answer in four pieces, and with one that refused; of their first events only a part is kept.
func TestRecordedOutputs(t *testing.T) {
	for _, c := range []struct {
		name                       string
		prompt, completion, cached int64
		pieces                     int // chunks of a stream with text
	}{
		{"codex", 120, 9, 20, 1},
		{"claude", 132, 9, 20, 4},
		{"gemini", 120, 9, 20, 4},
	} {
		for _, d := range []cli.Dialect{cli.Dialect(c.name), cli.DialectAuto} {
			t.Run(c.name+" "+string(d), func(t *testing.T) {
				lines := func(f *cli.Config) { f.Parser, f.Dialect = cli.ParserLines, d }
				w := newWorld(t, lines, inPlace(t, []string{"play testdata/" + c.name + "-ok.jsonl"})...)
				r, end := w.do(hello)
				wantEnd(t, end, adapter.DispatchedYes, "")
				a := r.whole(t)
				if a.Choices[0].Message.Content != madrid || a.Choices[0].Finish != "stop" {
					t.Errorf("%s", r.text())
				}
				if a.Usage == nil || a.Usage.Prompt != c.prompt || a.Usage.Completion != c.completion || a.Usage.Details.Cached != c.cached {
					t.Errorf("usage in %s", r.text())
				}
				r, end = w.do(helloStream)
				wantEnd(t, end, adapter.DispatchedYes, "")
				text, finish, done := r.streamed(t)
				if n := strings.Count(r.text(), `"content":"`); text != madrid || finish != "stop" || !done || n < c.pieces {
					t.Errorf("streamed %q in %d pieces, %q, done %v", text, n, finish, done)
				}
			})
		}
		t.Run(c.name+" failed", func(t *testing.T) {
			lines := func(f *cli.Config) { f.Parser = cli.ParserLines }
			for _, code := range []int{0, 1} { // whatever the code, the output says it
				w := newWorld(t, lines, append(inPlace(t, []string{"play testdata/" + c.name + "-failed.jsonl"}), fmt.Sprint("exit ", code))...)
				r, end := w.do(helloStream)
				wantEnd(t, end, adapter.DispatchedYes, "")
				if a := r.whole(t); r.status != 502 || a.Error.Code != "provider_error" || !strings.Contains(a.Error.Message, "the model is on strike") {
					t.Errorf("status %d, %s", r.status, r.text())
				}
			}
		})
	}
}

// An output that breaks off is no answer, however the command exits.
func TestOutputsThatBreakOff(t *testing.T) {
	for name, script := range map[string][]string{
		"codex without turn.completed": {`say {"type":"thread.started"}`, `say {"type":"item.completed","item":{"type":"agent_message","text":"half"}}`},
		"claude without result":        {`say {"type":"system"}`, `say {"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"half"}]}}`},
		"gemini without result":        {`say {"type":"init"}`, `say {"type":"message","role":"assistant","content":"half","delta":true}`},
		"nothing that is known":        {"say Please log in first.", `say {"type":"banner"}`},
		"nothing":                      nil,
	} {
		t.Run(name, func(t *testing.T) {
			r, end := newWorld(t, func(c *cli.Config) { c.Parser = cli.ParserLines }, script...).do(hello)
			wantEnd(t, end, adapter.DispatchedYes, "")
			if a := r.whole(t); r.status != 502 || !strings.Contains(a.Error.Message, "lacks") {
				t.Errorf("status %d, %s", r.status, r.text())
			}
		})
	}
}

func TestAnAgentThatSpeaksTwice(t *testing.T) {
	for name, script := range map[string][]string{
		"codex": {
			`say {"type":"thread.started"}`, `say {"type":"item.completed","item":{"type":"agent_message","text":"one"}}`,
			`say {"type":"item.completed","item":{"type":"command_execution","text":"no"}}`, `say {"type":"error","message":"Reconnecting... 1/5"}`,
			`say {"type":"item.completed","item":{"type":"agent_message","text":"two"}}`, `say {"type":"turn.completed"}`,
		},
		"claude": {
			`say {"type":"system"}`, `say {"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"one"},{"type":"tool_use"}]}}`,
			`say {"type":"assistant","parent_tool_use_id":"t","message":{"id":"3","content":[{"type":"text","text":"of a helper"}]}}`,
			`say {"type":"assistant","message":{"id":"2","content":[{"type":"text","text":"two"}]}}`, `say {"type":"result","subtype":"success","result":"two"}`,
		},
		"claude in pieces": {
			`say {"type":"system"}`, `say {"type":"stream_event","event":{"type":"message_start","message":{"id":"1"}}}`,
			`say {"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"one"}}}`,
			`say {"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"one"}]}}`,
			`say {"type":"stream_event","event":{"type":"message_start","message":{"id":"2"}}}`,
			`say {"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"two"}}}`,
			`say {"type":"assistant","message":{"id":"2","content":[{"type":"text","text":"two"}]}}`, `say {"type":"result","subtype":"success"}`,
		},
		"gemini": {
			`say {"type":"init"}`, `say {"type":"message","role":"assistant","content":"one","delta":true}`, `say {"type":"tool_use"}`, `say {"type":"tool_result"}`,
			`say {"type":"message","role":"assistant","content":"two","delta":true}`, `say {"type":"result","status":"success"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, end := newWorld(t, func(c *cli.Config) { c.Parser = cli.ParserLines }, script...).do(hello)
			wantEnd(t, end, adapter.DispatchedYes, "")
			if got := r.whole(t).Choices[0].Message.Content; got != "one\n\ntwo" {
				t.Errorf("the answer is %q", got)
			}
		})
	}
}

func TestFieldsOfAnyCommand(t *testing.T) {
	fields := &cli.Fields{Text: "delta.0.t", Final: "all", Error: "err", Finish: "why", PromptTokens: "n.in", CompletionTokens: "n.out"}
	for name, c := range map[string]struct {
		script []string
		want   string
	}{
		"pieces":  {[]string{`say {"delta":[{"t":"a"}]}`, "say noise", `say {"delta":[{"t":"b"}],"why":"length"}`, `say {"all":"ab","n":{"in":3,"out":2}}`}, "ab"},
		"whole":   {[]string{`say {"delta":[]}`, `raw {"all":"x","why":"length","n":{"in":3,"out":2}}`}, "x"}, // no line end
		"crlf":    {[]string{`raw {"delta":[{"t":"a"}],"why":"length"}\r\n{"n":{"in":3,"out":2}}\r\n`}, "a"},
		"failure": {[]string{`say {"err":"out of paper"}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, end := newWorld(t, func(f *cli.Config) { f.Parser, f.Fields = cli.ParserLines, fields }, c.script...).do(hello)
			wantEnd(t, end, adapter.DispatchedYes, "")
			a := r.whole(t)
			switch {
			case c.want == "" && (r.status != 502 || !strings.Contains(a.Error.Message, "out of paper")):
				t.Errorf("status %d, %s", r.status, r.text())
			case c.want != "" && (a.Choices[0].Message.Content != c.want || a.Choices[0].Finish != "length" || a.Usage.Prompt != 3 || a.Usage.Completion != 2):
				t.Errorf("%s", r.text())
			}
		})
	}
}

func TestServerSentEvents(t *testing.T) {
	w := newWorld(t, func(c *cli.Config) { c.Parser = cli.ParserSSE },
		`raw : a comment\r\n\r\nevent: x\r\ndata: {"choices":[{"delta":\r\ndata: {"content":"one "}}]}\r\n\r\n`,
		`raw data:{"choices":[{"delta":{"content":"two"},"finish_reason":"stop"}]}\n\ndata: {"usage":{"prompt_tokens":4,"completion_tokens":2}}\n\ndata: [DONE]\n\n`)
	r, end := w.do(hello)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if a := r.whole(t); a.Choices[0].Message.Content != "one two" || a.Usage.Prompt != 4 {
		t.Errorf("%s", r.text())
	}
}

// A schema goes to the command's own option if it has one, else into the prompt.
func TestSchemaOfTheAnswer(t *testing.T) {
	const body = `{"model":"m","response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}},"messages":[{"role":"user","content":"hello"}]}`
	w := newWorld(t, nil, "echo")
	r, _ := w.do(body)
	if got := r.whole(t).Choices[0].Message.Content; !strings.HasPrefix(got, "hello\n\n") || !strings.HasSuffix(got, `{"type":"object"}`) {
		t.Errorf("the prompt is %q", got)
	}
	w = newWorld(t, nil, "play {schema_file}", "echo")
	r, _ = w.do(body)
	if got := r.whole(t).Choices[0].Message.Content; got != `{"type":"object"}hello` {
		t.Errorf("schema and prompt are %q", got)
	}
	if left, _ := filepath.Glob(w.config.Scratch + "/*/*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
