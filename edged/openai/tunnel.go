package openai

import (
	"net/http"
	"strings"

	"iop/fsm"
)

// capabilities are the routes that only go to providers which declare them, by the path's first part under /v1/.
// Every other path that names a model needs "other".
func capabilityOf(part string) (name string, needs fsm.Needs) {
	switch part {
	case "rerank", "score", "audio", "images", "tokenize", "moderations":
		name = part
	case "detokenize":
		name = "tokenize"
	default:
		name = "other"
	}
	return name, map[string]fsm.Needs{
		"rerank": fsm.NeedRerank, "score": fsm.NeedScore, "audio": fsm.NeedAudio, "images": fsm.NeedImages,
		"tokenize": fsm.NeedTokenize, "moderations": fsm.NeedModerations, "other": fsm.NeedOther,
	}[name]
}

// tunnelRoute is the route of any other POST under /v1/; nil if the path is none that a backend may be given: a part of
// dots would mean another path there.
func tunnelRoute(path string) *route {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok || rest == "" {
		return nil
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\\\x00") {
			return nil
		}
	}
	part, _, _ := strings.Cut(rest, "/")
	name, needs := capabilityOf(part)
	return &route{path: path, needs: needs, embeds: true, capability: name}
}

// serveTunnel passes a request on to a provider that declares to have its route. false: it is no such request.
func (s *Server) serveTunnel(w http.ResponseWriter, r *http.Request) bool {
	to := tunnelRoute(r.URL.Path)
	if r.Method != http.MethodPost || to == nil || s.gets(r.URL.Path) {
		return false
	}
	if !s.catalog.Load().offers(to.needs) {
		s.tell(w, to.missing(r))
		return true
	}
	x := s.take(w, r, to)
	abort := x.serve(r)
	s.putBack(x)
	if abort {
		panic(http.ErrAbortHandler)
	}
	return true
}

// missing tells that no provider has the route.
func (to *route) missing(r *http.Request) *failure {
	return &failure{kind: kindURL, dispatched: DispatchedNo, message: "POST " + shown(r.URL.Path) +
		" is passed on to providers that declare the capability '" + to.capability + "', and none does. Check the URL, or ask the operator to add it to nodes[].providers[].capabilities of one whose backend has that route."}
}

// undeclared puts the words of a refusal right: the model's providers lack what the route needs.
func (to *route) undeclared(f *failure) {
	if to.capability != "" && f.code == kindUnsupported.code {
		f.message = "No provider of this model declares the capability '" + to.capability + "', which this route needs. Use another model, or ask the operator to add it to nodes[].providers[].capabilities of one whose backend has the route."
	}
}
