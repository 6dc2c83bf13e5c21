package e2e

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// stream is a streamed answer that is read piece by piece.
type stream struct {
	t      testing.TB
	res    *http.Response
	r      *bufio.Reader
	cancel context.CancelFunc
}

// open sends a streaming request and waits for its headers.
func (w *world) open(a ask) *stream {
	w.t.Helper()
	a.stream = true
	ctx, cancel := context.WithCancel(context.Background())
	r, err := a.request(ctx, w.edge.openai)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := newClient().Do(r)
	if err != nil {
		w.t.Fatalf("open the stream %s: %v", a.tag, err)
	}
	s := &stream{t: w.t, res: res, r: bufio.NewReader(res.Body), cancel: cancel}
	w.t.Cleanup(s.leave)
	return s
}

// leave is the client closing its connection.
func (s *stream) leave() {
	s.cancel()
	_ = s.res.Body.Close()
}

// frame reads up to the next data line and returns its data.
func (s *stream) frame() (string, error) {
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:"); ok {
			return strings.TrimPrefix(data, " "), nil
		}
	}
}

// next is frame that must come.
func (s *stream) next() string {
	s.t.Helper()
	f, err := s.frame()
	if err != nil {
		s.t.Fatalf("no frame came: %v", err)
	}
	return f
}

// rest reads to the end: the data of all frames, and whether the end was clean, that is orderly and framed.
func (s *stream) rest() (all []string, clean bool) {
	for {
		f, err := s.frame()
		if err != nil {
			return all, errors.Is(err, io.EOF) && framed(s.res)
		}
		all = append(all, f)
	}
}
