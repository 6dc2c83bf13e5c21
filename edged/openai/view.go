package openai

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"iop/fsm"
)

// View is what this package knows of the configuration. It must not be changed after Swap.
type View struct {
	Models    []Model
	Providers []Provider
	// LongThreshold is the estimated input tokens from which a request is long; 0 = none is.
	LongThreshold int64
	// Tokens are who may call; none = anyone may.
	Tokens []Token
	// Principals are those that may not use all models, or that are told more.
	Principals []Principal
	// CountTokens: the tokens that backends report are counted per token.
	CountTokens  bool
	ProviderAuth ProviderAuth
}

// Model is a model key.
type Model struct {
	ID      fsm.ModelID
	Created int64 // Unix seconds, for the list of models; 0 = the time of Swap
	// Generation is the model's policy as a JSON object: defaults, and caps where the key begins with max_. nil = none.
	Generation json.RawMessage
	// Candidates are the providers that serve it. Operators are told.
	Candidates []Candidate
}

// Candidate is a provider and the model's name there.
type Candidate struct{ Provider, Served string }

// Provider says how a provider is reached.
type Provider struct {
	ID      fsm.ProviderID
	Adapter string
	// OpenAI: it is an OpenAI-compatible server, so it may get a caller's own key (ProviderAuth).
	OpenAI bool
	// Unlimited: it has no bound, so it can be addressed directly, beside the queue (direct.go).
	Unlimited bool
	// Can are the kinds of requests that it takes.
	Can fsm.Needs
	// Models are the names that it serves, the one to use if none is named first.
	Models []string
}

// Token is a token that may call.
type Token struct {
	Ref       string
	SHA256    string // of the token, 64 hex digits
	Principal string
}

// Principal is what one principal may see and use.
type Principal struct {
	Ref      string
	Models   []string // names that it may use, provider:ID for a direct one; empty = all
	Operator bool     // the list of models tells it of their candidates
}

// ProviderAuth passes a caller's own key for the backend on.
type ProviderAuth struct {
	Enabled      bool
	FromHeader   string
	TargetHeader string
	Scheme       string // "" = none
	Required     bool
}

// catalog is a View made ready for use.
type catalog struct {
	View
	models    map[string]*model
	direct    map[string]*model // by the whole name, of the providers that can be addressed directly
	providers map[fsm.ProviderID]Provider
	tokens    []token
	allowed   map[string]*allowed
	list      []byte // answer of GET /v1/models
}

// model is a Model made ready for use.
type model struct {
	id         fsm.ModelID
	name       string // as clients write it; only a direct one differs from the id
	created    int64
	policy     []param
	candidates []Candidate
	scale      *scale // of its token estimates; kept from view to view

	// Of a direct one, else "":
	provider fsm.ProviderID
	served   string
}

// Swap puts a new view in place of the present one. Requests that run keep theirs. On an error nothing changes.
func (s *Server) Swap(v *View) error {
	c := &catalog{View: *v, models: make(map[string]*model, len(v.Models)), providers: map[fsm.ProviderID]Provider{}}
	old := s.catalog.Load()
	for i := range v.Models {
		m, err := newModel(&v.Models[i])
		if err != nil {
			return err
		}
		if was := old.models[string(m.id)]; was != nil {
			m.scale, m.created = was.scale, was.created
		}
		c.models[string(m.id)] = m
	}
	for _, p := range v.Providers {
		c.providers[p.ID] = p
	}
	c.direct = directModels(v.Providers, old.direct)
	for _, t := range v.Tokens {
		sum, err := hex.DecodeString(t.SHA256)
		if err != nil || len(sum) != len(token{}.sum) {
			return fmt.Errorf("token %s: token_hash_sha256 is not 64 hex digits", t.Ref)
		}
		c.tokens = append(c.tokens, token{sum: [32]byte(sum), principal: t.Principal, ref: t.Ref})
	}
	if c.ProviderAuth.Enabled && (c.ProviderAuth.FromHeader == "" || c.ProviderAuth.TargetHeader == "") {
		return fmt.Errorf("provider_auth: from_header and target_header must be given")
	}
	c.list = c.listModels(nil)
	c.allowed = make(map[string]*allowed, len(v.Principals))
	for i := range v.Principals {
		c.allowed[v.Principals[i].Ref] = c.newAllowed(&v.Principals[i])
	}
	s.catalog.Store(c)
	return nil
}

func newModel(v *Model) (*model, error) {
	m := &model{id: v.ID, name: string(v.ID), created: v.Created, scale: &scale{}, candidates: inOrder(v.Candidates)}
	if m.created == 0 {
		m.created = time.Now().Unix()
	}
	if len(v.Generation) == 0 {
		return m, nil
	}
	var policy map[string]json.RawMessage
	if err := json.Unmarshal(v.Generation, &policy); err != nil {
		return nil, fmt.Errorf("model %s: generation: %w", v.ID, err)
	}
	for name, value := range policy {
		p := param{key: keyOf([]byte(name)), name: name, value: string(value)}
		if p.key == keyNone || p.key < keyMaxTokens {
			return nil, fmt.Errorf("model %s: generation: %s can't be set by a policy", v.ID, name)
		}
		if strings.HasPrefix(name, "max_") {
			if err := json.Unmarshal(value, &p.limit); err != nil {
				return nil, fmt.Errorf("model %s: generation: %s: %w", v.ID, name, err)
			}
			p.capped = true
		}
		m.policy = append(m.policy, p)
	}
	sort.Slice(m.policy, func(i, j int) bool { return m.policy[i].name < m.policy[j].name })
	return m, nil
}
