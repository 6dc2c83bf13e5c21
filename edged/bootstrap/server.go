package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Prefix is the path that the server is asked under.
const Prefix = "/bootstrap/"

// Host is who lets machines in: edged.
type Host interface {
	// Redeem uses a join token for a node's own token, both as SHA-256. Its error wraps ErrUnknownToken or ErrExpired, or is
	// a fault of ours.
	Redeem(ctx context.Context, token, nodeToken [32]byte) (*Welcome, error)
}

// Options are what New needs.
type Options struct {
	Host      Host         // required
	Dir       string       // of the builds; "" = there are none
	URL       string       // under which new machines reach this listener, http(s)://host[:port]
	Plaintext bool         // machines beyond loopback may join without TLS
	Logger    *slog.Logger // nil = silent
}

// requestTime is how long a request's body may take, answerTime how long all answers but builds.
const (
	requestTime = 20 * time.Second
	answerTime  = time.Minute
)

// downloadsMax is how many builds are sent at the same time; downloadTime is how long one may take.
const (
	downloadsMax = 16
	downloadTime = 30 * time.Minute
)

// Server answers new machines. It is an http.Handler, safe for concurrent use.
type Server struct {
	o         Options
	shelf     shelf
	joins     limiter
	downloads chan struct{}
}

// New returns a server.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.URL = strings.TrimRight(o.URL, "/")
	return &Server{o: o, shelf: shelf{dir: o.Dir}, downloads: make(chan struct{}, downloadsMax)}
}

// ServeHTTP answers what is asked under Prefix.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A client that is slow to send or to take is cut off; what is set for it must not outlive the request.
	w.Header().Set("Connection", "close")
	patience := http.NewResponseController(w)
	now := time.Now()
	_ = errors.Join(patience.SetReadDeadline(now.Add(requestTime)), patience.SetWriteDeadline(now.Add(answerTime))) // a recorder has none
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case name == "join" && r.Method == http.MethodPost:
		s.join(w, r)
	case name == "join":
		notAllowed(w, http.MethodPost)
	case !get:
		notAllowed(w, "GET, HEAD")
	case name == "SHA256SUMS":
		s.serveSums(w)
	case name == scriptSh || name == scriptPS:
		s.serveScript(w, name)
	default:
		s.serveBuild(w, r, name)
	}
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	say(w, http.StatusMethodNotAllowed, "use "+allow)
}

func (s *Server) serveSums(w http.ResponseWriter) {
	builds, err := s.shelf.list()
	if err != nil {
		s.fault(w, err)
		return
	}
	var b strings.Builder
	for _, x := range builds {
		b.WriteString(x.SHA256 + "  " + x.Name + "\n")
	}
	writeText(w, b.String())
}

func (s *Server) serveScript(w http.ResponseWriter, name string) {
	text, err := s.script(name)
	if err != nil {
		s.fault(w, err)
		return
	}
	writeText(w, text)
}

// serveBuild sends a build. Only the names of Builds stand for a file, so no path leads anywhere else.
func (s *Server) serveBuild(w http.ResponseWriter, r *http.Request, name string) {
	known := false
	for _, b := range Builds() {
		known = known || b == name
	}
	if !known {
		say(w, http.StatusNotFound, "there is nothing of that name; builds are named "+strings.Join(Builds(), ", "))
		return
	}
	select {
	case s.downloads <- struct{}{}:
		defer func() { <-s.downloads }()
	default:
		w.Header().Set("Retry-After", "10")
		say(w, http.StatusServiceUnavailable, "too many downloads at the moment: try again in 10 s")
		return
	}
	f, b, err := s.shelf.open(name)
	if err != nil {
		s.fault(w, err)
		return
	}
	defer f.Close() //nolint:errcheck // only read from
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", strconv.Quote(b.SHA256))
	h.Set("X-Sha256", b.SHA256)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime)) // as above
	http.ServeContent(w, r, name, time.Time{}, f)
}

// fault tells what is wrong with the builds; the operator's paths are no business of a caller's.
func (s *Server) fault(w http.ResponseWriter, err error) {
	s.o.Logger.Warn("bootstrap", "error", err)
	switch {
	case errors.Is(err, errNoDir):
		say(w, http.StatusNotFound, errNoDir.Error())
	case errors.Is(err, fs.ErrNotExist):
		say(w, http.StatusNotFound, "this build is not there: the operator makes it with 'make artifacts' and puts it into edge.bootstrap.artifact_dir")
	default:
		say(w, http.StatusInternalServerError, "this build can't be served: the operator finds the cause in the edge's log")
	}
}

func say(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // an error means that the caller left
}

func writeText(w http.ResponseWriter, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write([]byte(text)) // an error means that the caller left
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the caller left
}
