package ollama_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"iop/noded/adapter"
	"iop/noded/adapter/ollama"
	"iop/noded/adapter/ollama/recorded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked is a request as the fake got it.
type asked struct {
	method, path string
	header       http.Header
	body         map[string]any
}

// fake is an Ollama that replays what was recorded of one (0.17.4), byte for byte over a real socket.
type fake struct {
	listener net.Listener
	wg       sync.WaitGroup
	// answer gives the raw bytes of the n-th answer, from 0; what it does not end with close is kept alive.
	answer func(n int, a asked, c net.Conn) (raw string, closes bool)

	mu    sync.Mutex
	asked []asked
	conns []net.Conn
}

func newFake(t testing.TB, answer func(n int, a asked, c net.Conn) (string, bool)) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{listener: l, answer: answer}
	f.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			f.wg.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.wg.Wait()
	})
	return f
}

func (f *fake) serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // the test has ended with it
	for br := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		a := asked{method: r.Method, path: r.URL.RequestURI(), header: r.Header}
		_ = json.Unmarshal(body, &a.body) // none of a GET
		f.mu.Lock()
		n := len(f.asked)
		f.asked = append(f.asked, a)
		f.mu.Unlock()
		raw, closes := f.answer(n, a, c)
		if _, err := io.WriteString(c, raw); err != nil || closes {
			return
		}
	}
}

func (f *fake) url() string { return "http://" + f.listener.Addr().String() }

// got are the requests so far.
func (f *fake) got() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]asked(nil), f.asked...)
}

// replay answers everything with one recording.
func replay(raw string) func(int, asked, net.Conn) (string, bool) {
	return func(int, asked, net.Conn) (string, bool) { return raw, false }
}

// ndjson is a streamed answer as Ollama's server frames it: a chunk per line.
func ndjson(lines ...string) string {
	b := "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nDate: Sun, 29 Nov 2026 18:11:45 GMT\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, l := range lines {
		b += fmt.Sprintf("%x\r\n%s\n\r\n", len(l)+1, l)
	}
	return b + "0\r\n\r\n"
}

func jsonAnswer(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(body), body)
}

// What was recorded.
const (
	said1     = recorded.Said1
	said2     = recorded.Said2
	thought   = recorded.Thought
	doneStop  = recorded.DoneStop
	doneLong  = recorded.DoneLong
	likely1   = recorded.Likely1
	called    = recorded.Called
	wrote     = recorded.Wrote
	wroteDone = recorded.WroteDone
	loaded    = recorded.Loaded
	brokeOff  = recorded.BrokeOff
	tooLong   = recorded.TooLong
)

// recorder is an adapter.Answer that keeps everything.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
	onData func() error // may be nil
}

func (r *recorder) Head(status int, h http.Header) error {
	if r.status != 0 {
		return fmt.Errorf("a second head")
	}
	r.status, r.header = status, h
	return nil
}

func (r *recorder) Data(p []byte) error {
	r.body.Write(p)
	if r.onData != nil {
		return r.onData()
	}
	return nil
}

func newAdapter(t testing.TB, c ollama.Config) *ollama.Adapter {
	t.Helper()
	a, err := ollama.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func post(path, body string) *adapter.Call {
	return &adapter.Call{
		Method: http.MethodPost, Path: path, Body: []byte(body), Type: "ollama",
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "Traceparent": {"00-1-2-00"}},
	}
}

// chats is a chat with these members, chatting a streamed one.
func chats(members string) *adapter.Call {
	return post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"hi"}]`+members+`}`)
}

func chatting(members string) *adapter.Call { return chats(`,"stream":true` + members) }

func do(ctx context.Context, a *ollama.Adapter, c *adapter.Call) (*recorder, adapter.End) {
	var r recorder
	return &r, a.Do(ctx, c, &r)
}

// ask makes a call that must end in order.
func ask(t *testing.T, a *ollama.Adapter, c *adapter.Call) *recorder {
	t.Helper()
	r, end := do(t.Context(), a, c)
	if end.Code != adapter.CodeOK || end.Dispatched != adapter.DispatchedYes {
		t.Fatalf("the run ended as %+v after %s", end, r.body.String())
	}
	return r
}

// answered is an answer, or a chunk.
type answered struct {
	Object, Model string
	Choices       []struct {
		Index          int
		Text           string
		Message, Delta struct {
			Role, Content    string
			ReasoningContent string `json:"reasoning_content"`
			ToolCalls        []struct {
				Index    int
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Logprobs *struct {
			Content []struct {
				Token   string
				Logprob float64
				Bytes   []int
				Top     []struct{ Token string } `json:"top_logprobs"`
			}
		}
		FinishReason string `json:"finish_reason"`
	}
	Data []struct {
		Index     int
		Embedding []float32
	}
	Usage *struct {
		Prompt     int                `json:"prompt_tokens"`
		Completion int                `json:"completion_tokens"`
		Total      int                `json:"total_tokens"`
		Took       map[string]float64 `json:"durations_ms"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

func whole(t *testing.T, r *recorder) answered {
	t.Helper()
	var a answered
	if err := json.Unmarshal(r.body.Bytes(), &a); err != nil {
		t.Fatalf("%v in %s", err, r.body.String())
	}
	return a
}

// frames splits a stream; ended tells whether [DONE] is last.
func frames(t *testing.T, body string) (out []answered, ended bool) {
	t.Helper()
	for f := range strings.SplitSeq(body, "\n\n") {
		data, ok := strings.CutPrefix(f, "data: ")
		switch {
		case f == "":
		case !ok || ended:
			t.Fatalf("frame %q", f)
		case data == "[DONE]":
			ended = true
		default:
			var a answered
			if err := json.Unmarshal([]byte(data), &a); err != nil {
				t.Fatalf("%v in %s", err, data)
			}
			out = append(out, a)
		}
	}
	return out, ended
}
