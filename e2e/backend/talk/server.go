package talk

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Dialect is how a server speaks.
type Dialect string

// The dialects.
const (
	OpenAI Dialect = "openai"
	VLLM   Dialect = "vllm"   // older ones: their errors are flat
	Llama  Dialect = "llama"  // llama-server
	Ollama Dialect = "ollama" // its own API
)

// Server is an http.Handler that talks in one dialect. It may be used by many at once.
type Server struct {
	dialect Dialect

	mu    sync.Mutex
	heard []Heard
	left  int
}

// Heard is a request as the server got it.
type Heard struct {
	Path string
	Body []byte
}

// New returns a server.
func New(d Dialect) *Server { return &Server{dialect: d} }

// Take returns what was heard since the last time.
func (s *Server) Take() []Heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.heard
	s.heard = nil
	return out
}

// Left is how many callers have left a run that lingered.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusOK) // a probe
		return
	}
	s.mu.Lock()
	s.heard = append(s.heard, Heard{Path: r.URL.Path, Body: body})
	s.mu.Unlock()
	t := &turn{s: s, w: w, ctx: r.Context(), body: body, script: scriptOf(body)}
	switch {
	case t.fails():
	case s.dialect == Ollama:
		t.ollama(r.URL.Path)
	case strings.HasSuffix(r.URL.Path, "/embeddings"):
		t.openAIVectors()
	default:
		t.openAI(strings.HasSuffix(r.URL.Path, "/chat/completions"))
	}
}

// turn is one answer.
type turn struct {
	s      *Server
	w      http.ResponseWriter
	ctx    context.Context
	body   []byte
	script Script
	pieces int // sent of a stream
}

// send writes a piece of a stream and does after it what the script asks for.
func (t *turn) send(piece string) {
	size := len(piece)
	if t.script == Split {
		size = 1
	}
	for ; len(piece) > 0; piece = piece[min(size, len(piece)):] {
		_, _ = io.WriteString(t.w, piece[:min(size, len(piece))])
		_ = http.NewResponseController(t.w).Flush()
	}
}

// said is called after each piece of text.
func (t *turn) said() {
	t.pieces++
	switch {
	case t.pieces > 1:
	case t.script == Break:
		t.breakOff()
	case t.script == Linger:
		<-t.ctx.Done()
		t.s.mu.Lock()
		t.s.left++
		t.s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
}

func (t *turn) json(status int, body string) {
	t.w.Header().Set("Content-Type", "application/json")
	t.w.WriteHeader(status)
	_, _ = io.WriteString(t.w, body)
}
