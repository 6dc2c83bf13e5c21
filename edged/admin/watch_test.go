package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

// events reads the stream and gives what it says.
func events(ctx context.Context, t *testing.T, url string) <-chan adminapi.Event {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", url+"/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("content type %q", kind)
	}
	out := make(chan adminapi.Event)
	go func() {
		defer close(out)
		defer func() { _ = res.Body.Close() }()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var e adminapi.Event
			if json.Unmarshal([]byte(data), &e) != nil {
				e.Kind = "broken: " + data
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func TestWatch(t *testing.T) {
	w := busy(t)
	s := serve(t, w, nil)
	ctx, leave := context.WithCancel(t.Context())
	stream := events(ctx, t, s.URL)
	w.awaitWatchers(1)
	session := fsm.SessionID(2)
	w.do(session, &fsm.Release{Lease: 2, Reason: fsm.ReasonDone})
	w.do(session, &fsm.LinkLost{Node: "studio", Generation: 1, Reason: fsm.ReasonHeartbeat})
	var got []string
	for len(got) < 6 {
		e := <-stream
		got = append(got, fmt.Sprint(e.Kind, " ", e.Request, " ", e.Lease, " ", e.Node, " ", e.Reason))
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{
		"granted r/5 \x1b[31m 4 studio ", "returned r-1 1 studio heartbeat", "ended r-4 0  unavailable", "link_fenced  0 studio heartbeat",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	leave()
	w.awaitWatchers(0)
	for range stream { // until the reader has ended
	}
}

func TestWatchEndsWhenTheEdgeStops(t *testing.T) {
	stopping := make(chan struct{})
	w := newWorld(t)
	s := serve(t, w, func(o *admin.Options) { o.Stopping = stopping })
	stream := events(t.Context(), t, s.URL)
	w.awaitWatchers(1)
	close(stopping)
	if e, open := <-stream; open {
		t.Errorf("got %+v", e)
	}
	w.awaitWatchers(0)
}

// Watchers that never read change nothing: the machine that they watch ends as one that nobody watches.
func TestDeafWatchersChangeNothing(t *testing.T) {
	run := func(deaf int) [32]byte {
		w := busy(t)
		s := serve(t, w, nil)
		for range deaf {
			c, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, "GET /watch HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		w.awaitWatchers(deaf)
		// Each step is one or more effects; far more than a watcher's buffer holds.
		session := fsm.SessionID(2)
		for i := range 3000 {
			w.do(session, &fsm.Admit{Request: fsm.RequestID(fmt.Sprint("q", i)), Model: "ornith:35b"})
			w.do(0, &fsm.Expire{Term: 3})
			w.now += fsm.Second
		}
		return w.m.Digest()
	}
	if alone, watched := run(0), run(50); alone != watched {
		t.Errorf("digest %x alone, %x with watchers", alone, watched)
	}
}
