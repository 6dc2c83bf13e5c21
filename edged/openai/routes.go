package openai

import (
	"net/http"
	"strconv"
	"strings"

	"iop/fsm"
)

// route is an inference route.
type route struct {
	path   string
	needs  fsm.Needs
	embeds bool // it generates nothing, so no generation policy applies
	// responds: it is the Responses API, which is built on chat (responding.go).
	responds bool
	// messages: it is Anthropic's API (messages.go), of which a policy can only set what it has words for.
	messages bool
	// capability is what a provider must declare to get requests of this route (tunnel.go); "" = nothing.
	capability string
}

var (
	routeChat        = route{path: "/v1/chat/completions", needs: fsm.NeedChat}
	routeCompletions = route{path: "/v1/completions", needs: fsm.NeedCompletions}
	routeEmbeddings  = route{path: "/v1/embeddings", needs: fsm.NeedEmbeddings, embeds: true}
	routeResponses   = route{path: "/v1/responses", needs: fsm.NeedChat, responds: true}
	routeMessages    = route{path: messagesPath, needs: fsm.NeedChat, messages: true}
	routeCountTokens = route{path: countTokensPath, messages: true}
)

// ServeHTTP answers a client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.o.CORS.answer(w, r) {
		return
	}
	if r.ContentLength != 0 {
		boundUnread(w)
	}
	if len(s.catalog.Load().tokens) == 0 && s.o.CORS.stray(r) {
		s.boundAnswer(w)
		w.Header()["X-Request-Id"] = []string{s.newID()}
		s.tell(w, strayPage(r))
		return
	}
	if fields(r.Header) > headerFields {
		s.boundAnswer(w)
		w.Header()["X-Request-Id"] = []string{s.newID()}
		s.tell(w, &failure{kind: kindHeader, message: "The request has more than " + strconv.Itoa(headerFields) + " header fields. Send fewer."})
		return
	}
	var to *route
	switch r.URL.Path {
	case "/v1/chat/completions":
		to = &routeChat
	case "/v1/completions":
		to = &routeCompletions
	case "/v1/embeddings":
		to = &routeEmbeddings
	case "/v1/responses":
		to = &routeResponses
	case messagesPath:
		s.serveMessages(w, r, &routeMessages)
		return
	case countTokensPath:
		s.serveMessages(w, r, &routeCountTokens)
		return
	default:
		s.serveOther(w, r)
		return
	}
	if r.Method != http.MethodPost {
		s.boundAnswer(w)
		w.Header()["X-Request-Id"] = []string{s.answerID(r, "")}
		s.tell(w, notAllowed(w, r, "POST"))
		return
	}
	x := s.take(w, r, to)
	abort := x.serve(r)
	s.putBack(x)
	if abort {
		// The client must see a broken stream: no last chunk, and the connection closed.
		panic(http.ErrAbortHandler)
	}
}

// serveOther answers what takes no slot.
func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	s.boundAnswer(w)
	w.Header()["X-Request-Id"] = []string{s.answerID(r, "")}
	if strings.HasPrefix(r.URL.Path, responsesPath) && len(r.URL.Path) > len(responsesPath) {
		s.serveResponses(w, r)
		return
	}
	if s.serveTunnel(w, r) {
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if s.gets(r.URL.Path) {
			s.tell(w, notAllowed(w, r, "GET, HEAD"))
		} else {
			s.tell(w, unknownURL(r))
		}
		return
	}
	switch path := r.URL.Path; {
	case path == "/healthz":
		writeJSON(w, http.StatusOK, []byte("{\"status\":\"ok\"}\n"))
	case path == "/readyz":
		s.serveReady(w)
	case path == openapiPath:
		writeJSON(w, http.StatusOK, openapiDocument)
	case path == "/v1/models" || strings.HasPrefix(path, modelsPath) && len(path) > len(modelsPath):
		s.serveModels(w, r)
	default:
		s.tell(w, unknownURL(r))
	}
}

// fields counts the header fields of a request.
func fields(h http.Header) (n int) {
	for _, v := range h {
		n += len(v)
	}
	return n
}

func (s *Server) gets(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/v1/models" || path == openapiPath || strings.HasPrefix(path, modelsPath)
}

func (s *Server) serveReady(w http.ResponseWriter) {
	if s.o.Ready != nil {
		if err := s.o.Ready(); err != nil {
			s.tell(w, &failure{kind: kindNoLeader, message: "Not ready: " + err.Error()})
			return
		}
	}
	writeJSON(w, http.StatusOK, []byte("{\"status\":\"ready\"}\n"))
}

func (s *Server) serveModels(w http.ResponseWriter, r *http.Request) {
	c := s.catalog.Load()
	who, ok := c.identify(r.Header)
	if !ok {
		s.tell(w, badKey(r.Header))
		return
	}
	if r.URL.Path == "/v1/models" {
		list := c.list
		if a := c.allowed[who.principal]; a != nil {
			list = a.list
		}
		writeJSON(w, http.StatusOK, list)
		return
	}
	if f := s.serveModel(w, r, c, who); f != nil {
		s.tell(w, f)
	}
}

// tell answers a request that never reached admission.
func (s *Server) tell(w http.ResponseWriter, f *failure) {
	s.o.Metrics.Route("", "").Ended(f.outcome)
	f.write(w, s.o.Runner.RetryAfter())
}

func badKey(h http.Header) *failure {
	if bearer(h) == "" {
		return &failure{kind: kindKey, message: "No API key was sent. Send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'."}
	}
	return &failure{kind: kindKey, message: "The API key is not known here. Check it, or ask the operator to add its hash to openai.principal_tokens."}
}

func notAllowed(w http.ResponseWriter, r *http.Request, allow string) *failure {
	w.Header()["Allow"] = []string{allow}
	return &failure{kind: kindMethod, message: "The method " + shown(r.Method) + " is not allowed here. Use " + allow + "."}
}

func unknownURL(r *http.Request) *failure {
	return &failure{kind: kindURL, message: "There is no " + shown(r.Method) + " " + shown(r.URL.Path) +
		". Check the URL; this gateway serves /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/responses, /v1/messages and /v1/models; GET /openapi.json lists all."}
}

// shown is a client's text, short enough for a message.
func shown(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
