package openai_test

import (
	"context"
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

// lookedInto is a store that calls back before it hands a response out.
type lookedInto struct {
	openai.Store
	get func(id string)
}

func (s *lookedInto) Get(ctx context.Context, principal, id string) (*openai.Stored, error) {
	s.get(id)
	return s.Store.Get(ctx, principal, id)
}

// TestConversationsCountAmongBodies: a request of a few bytes brings in the conversation that it goes on with; what is
// gathered of it counts while it is gathered, and is given back.
func TestConversationsCountAmongBodies(t *testing.T) {
	store := &lookedInto{Store: openai.NewMemoryStore(0, 0), get: func(string) {}}
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.MaxBodyBytes, o.MaxBodies, o.Store = 1<<20, 1<<20, store })
	e.backend = chatter
	var first, last string
	for range 3 {
		o := asObject(t, e.respond(fmt.Sprintf(`{"model":"same","input":%q,"previous_response_id":%q}`, strings.Repeat("x", 150_000), last)))
		if last = o.ID; first == "" {
			first = o.ID
		}
	}
	large := `{"model":"same","x":"` + strings.Repeat("x", 900_000) + `"}`
	beside := 0
	store.get = func(id string) {
		if id == first { // the other two have been gathered by now
			beside = e.chat(large).StatusCode
		}
	}
	if r := e.respond(fmt.Sprintf(`{"model":"same","input":"x","previous_response_id":%q}`, last)); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if beside != 503 {
		t.Errorf("a large body beside a long conversation: %d", beside)
	}
	waitFor(t, "what was set aside is given back", func() bool { return e.chat(large).StatusCode == 200 })
}
