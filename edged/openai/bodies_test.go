package openai_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"iop/edged/openai"
)

// TestLargeBodiesTogetherAreBounded: clients that send many large bodies at the same time can't fill the memory: the one
// that is too many is told so, small requests go on, and when the others are through it is served.
func TestLargeBodiesTogetherAreBounded(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.MaxBodyBytes, o.MaxBodies = 1<<20, 1<<20 })
	large := `{"model":"same","x":"` + strings.Repeat("x", 900_000) + `"}`
	begin := func() net.Conn {
		c, _ := e.dial(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(large)))
		if _, err := io.WriteString(c, large[:600_000]); err != nil {
			t.Fatal(err)
		}
		return c
	}
	slow := begin()
	waitFor(t, "a large body is refused", func() bool {
		r := e.chat(large)
		if r.StatusCode == 503 {
			wantCode(t, r, 503, "overloaded")
			return true
		}
		_ = slow.Close() // the other was quicker to take the room, so this one may be the refused one
		slow = begin()
		return false
	})
	if r := e.chat(`{"model":"same"}`); r.StatusCode != 200 {
		t.Errorf("a small one too: %d %s", r.StatusCode, r.body)
	}
	_ = slow.Close()
	waitFor(t, "a large body passes again", func() bool { return e.chat(large).StatusCode == 200 })
	for range 5 {
		if r := e.chat(large); r.StatusCode != 200 {
			t.Fatalf("what was set aside was not given back: %d %s", r.StatusCode, r.body)
		}
	}
}
