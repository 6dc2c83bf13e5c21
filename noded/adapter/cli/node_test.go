//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"sync"
)

// passing writes an answer's body to stdout.
type passing struct{}

func (passing) Head(int, http.Header) error { return nil }

func (passing) Data(p []byte) error {
	_, err := os.Stdout.Write(p)
	return err
}

func contextOfNode() context.Context { return context.Background() }

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
