package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/edged/openai"
	"iop/fsm"
)

// TestBodyThatNeverComes: a request that is refused for its head alone is answered although its body never comes, and
// its connection is closed. Without a bound net/http would wait for the body for ever, and answer never.
func TestBodyThatNeverComes(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("good"), Principal: "team"}}
	})
	const chat = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		head   string
		status int
	}{
		"wrong key":        {chat + "Authorization: Bearer bad\r\n", 401},
		"encoded":          {chat + "Authorization: Bearer good\r\nContent-Encoding: gzip\r\n", 415},
		"wrong method":     {"PUT /v1/chat/completions HTTP/1.1\r\nHost: x\r\n", 405},
		"unknown URL":      {"POST /v1/nowhere HTTP/1.1\r\nHost: x\r\n", 404},
		"GET with a body":  {"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n", 200},
		"chunks, no chunk": {chat + "Authorization: Bearer bad\r\nTransfer-Encoding: chunked\r\n", 401},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(c.head, "chunked") {
				c.head += "Content-Length: 100\r\n"
			}
			conn, in := e.dial(c.head + "\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != c.status || !res.Close {
				t.Fatalf("%v, %v", res, err)
			}
			if _, err := io.Copy(io.Discard, in); err != nil {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
}

// TestNoInvitationForARefusedBody: a client that waits for 100 Continue before it sends a body that is too large is
// not asked to send it.
func TestNoInvitationForARefusedBody(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.MaxBodyBytes = 1000 })
	_, in := e.dial("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, " 413 ") {
		t.Errorf("%q, %v", line, err)
	}
}

// TestModelsForNobody: a client that asks for the models on and on and never reads is cut off.
func TestModelsForNobody(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, v *openai.View) {
		o.StallTimeout = 300 * time.Millisecond
		for i := range 2000 {
			v.Models = append(v.Models, openai.Model{ID: fsm.ModelID(fmt.Sprint("m-", i))})
		}
	})
	conn, _ := e.dial("")
	out := bufio.NewWriterSize(conn, 1<<16)
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	cut := make(chan struct{})
	go func() {
		for {
			if _, err := io.WriteString(out, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				close(cut)
				return
			}
		}
	}()
	select {
	case <-cut:
	case <-time.After(20 * time.Second):
		t.Error("the edge still waits for a client that does not read")
		_ = conn.Close()
		<-cut
	}
}
