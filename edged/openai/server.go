package openai

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"iop/edged/metrics"
	"iop/fsm"
	"iop/proto/spans"
)

// Options are what New needs. Zero values take the defaults named with them.
type Options struct {
	Runner  Runner       // required
	Backend Backend      // required
	Ready   func() error // why the edge is not ready, for GET /readyz; nil = it is
	Store   Store        // of responses; nil = a MemoryStore
	Metrics *metrics.Metrics
	Logger  *slog.Logger
	Tracer  *spans.Tracer             // nil: nothing is recorded
	Place   func(fsm.RequestID) Place // of a request that is recorded; nil: it is not told

	CORS           CORS
	MaxBodyBytes   int64         // 32 MiB
	MaxBodies      int64         // bytes of all large bodies at the same time; those beyond are refused: 1 GiB
	QueueKeepalive time.Duration // a waiting stream gets a sign of life this often; 0 = never
	BodyTimeout    time.Duration // for a request's body, and more for a long one: 30 s
	StallTimeout   time.Duration // a client that takes nothing for so long is cut off: 5 min
}

// Server answers clients. It is an http.Handler.
type Server struct {
	o       Options
	catalog atomic.Pointer[catalog]
	pool    sync.Pool // of *exchange
	life    [8]byte   // random, so that ids of different lives differ
	count   atomic.Uint64
	bodies  atomic.Int64 // bytes set aside for bodies, beyond bodyFirstBytes each
	jobs    jobs         // responses that run in the background
}

// New returns a server without models: Swap gives it some.
func New(o Options) *Server {
	if o.Metrics == nil {
		o.Metrics = metrics.New()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = 32 << 20
	}
	if o.MaxBodies <= 0 {
		o.MaxBodies = 1 << 30
	}
	if o.Store == nil {
		o.Store = NewMemoryStore(0, 0)
	}
	orSpan(&o.BodyTimeout, 30*time.Second)
	orSpan(&o.StallTimeout, 5*time.Minute)
	s := &Server{o: o}
	s.catalog.Store(&catalog{})
	_, _ = rand.Read(s.life[:]) // it never fails
	s.pool.New = func() any { return &exchange{s: s} }
	return s
}

func orSpan(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}

// Handler returns s.
func (s *Server) Handler() http.Handler { return s }

// Bounds of a client's connection.
const (
	headerTimeout = 10 * time.Second
	headerBytes   = 64 << 10
	headerFields  = 200
	idleTimeout   = 2 * time.Minute
)

// HTTP returns an HTTP server for s with its limits set. The caller serves with it and shuts it down.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler: s, ConnContext: withConn, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerBytes, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
}

// newID returns an id that no other request has.
func (s *Server) newID() string {
	var raw [16]byte
	copy(raw[:8], s.life[:])
	binary.BigEndian.PutUint64(raw[8:], s.count.Add(1))
	b := make([]byte, 0, 36)
	return string(hex.AppendEncode(append(b, "req_"...), raw[:]))
}

// clientIDMax is the longest x-request-id of a client that is taken over.
const clientIDMax = 128

// answerID is the x-request-id of an answer: the client's own if it is sane, else ours ("" = a new one).
func (s *Server) answerID(r *http.Request, ours string) string {
	if v := r.Header["X-Request-Id"]; len(v) == 1 && sane(v[0]) {
		return v[0]
	}
	if ours == "" {
		ours = s.newID()
	}
	return ours
}

func sane(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return id != "" && len(id) <= clientIDMax
}
