package chat_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"iop/noded/adapter/chat"
)

// recorded is an Answer that keeps what it gets. After room pieces it takes no more, if room is positive.
type recorded struct {
	status int
	header http.Header
	body   bytes.Buffer
	pieces int
	room   int
}

var errGone = errors.New("the client has gone")

func (r *recorded) Head(status int, h http.Header) error {
	if r.status != 0 {
		return errors.New("a second head")
	}
	r.status, r.header = status, h
	return nil
}

func (r *recorded) Data(p []byte) error {
	if r.room > 0 && r.pieces == r.room {
		return errGone
	}
	r.pieces++
	r.body.Write(p)
	return nil
}

// text is the answer as a golden file shows it.
func (r *recorded) text() string {
	return fmt.Sprintf("%d %s\n\n%s", r.status, r.header.Get("Content-Type"), r.body.String())
}

func read(t *testing.T, path, body string) *chat.Request {
	t.Helper()
	q, p := chat.Read(path, []byte(body))
	if p != nil {
		t.Fatalf("%s %s: %d %s %s", path, body, p.Status, p.Param, p.Error())
	}
	return q
}
