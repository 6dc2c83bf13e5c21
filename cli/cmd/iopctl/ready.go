package main

import (
	"bytes"
	"strings"
	"sync"
)

// readyLine takes what an edge writes to its standard output, up to the one line that tells its addresses:
//
//	edged ready openai=HOST:PORT node=HOST:PORT admin=HOST:PORT
type readyLine struct {
	seen chan struct{} // closed when the line is complete

	mu   sync.Mutex
	text bytes.Buffer
	line string
}

func newReadyLine() *readyLine { return &readyLine{seen: make(chan struct{})} }

// Write never fails; what follows the line is dropped.
func (r *readyLine) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.line != "" {
		return len(p), nil
	}
	r.text.Write(p)
	if line, _, whole := strings.Cut(r.text.String(), "\n"); whole {
		r.line = line
		close(r.seen)
	}
	return len(p), nil
}

// address gives what the line says of a listener; "" = nothing.
func (r *readyLine) address(listener string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, field := range strings.Fields(r.line) {
		if v, ok := strings.CutPrefix(field, listener+"="); ok {
			return v
		}
	}
	return ""
}
