package edged

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"iop/configs"
	"iop/edged/admission"
	"iop/edged/metrics"
	"iop/edged/nodelink"
	"iop/edged/openai"
	"iop/edged/refresh"
	"iop/fsm"
	"iop/storage"
)

// The rooms know nothing of each other; here their interfaces meet. Each joint only converts.

// runner lets openai admit requests.
type runner struct{ *admission.Admission }

func (r runner) Run(ctx context.Context, q openai.Request, c openai.Caller) error {
	return r.Admission.Run(ctx, admission.Request(q), c)
}

// backend lets openai exchange a request with a node.
type backend struct {
	links   *nodelink.Links
	metrics *metrics.Metrics
}

// endGate is the code of a run that the node's own count of the backend's slots refused.
const endGate = "concurrency"

func (b backend) Exchange(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End {
	e := b.links.Exchange(ctx, (*nodelink.Exchange)(x), a)
	if e.Code == endGate {
		b.metrics.GateRefused()
	}
	return openai.End{
		Dispatched: openai.Dispatched(e.Dispatched), Code: e.Code, Message: e.Message, Complete: e.Complete,
	}
}

// translate says in admission's words what the store's errors mean for a request.
func translate(err error) error {
	switch {
	case errors.Is(err, storage.ErrOverloaded):
		return fmt.Errorf("%w: %w", admission.ErrOverloaded, err)
	case errors.Is(err, storage.ErrSessionEnded):
		return fmt.Errorf("%w: %w", admission.ErrSessionEnded, err)
	case errors.Is(err, storage.ErrNoLeader):
		return fmt.Errorf("%w: %w", admission.ErrNoLeader, err)
	}
	return fmt.Errorf("%w: %w", admission.ErrFailed, err)
}

// permanent tells that a command will not do better next time.
func permanent(err error) bool {
	return errors.Is(err, storage.ErrSessionEnded) || errors.Is(err, storage.ErrFailed) || errors.Is(err, storage.ErrClosed)
}

// publicView is what openai knows of the configuration.
func publicView(c *configs.Cluster) (*openai.View, error) {
	v := &openai.View{
		LongThreshold: c.LongContextThresholdTokens,
		CountTokens:   c.OpenAI.Usage.Tokens,
		ProviderAuth: openai.ProviderAuth{
			Enabled: c.OpenAI.ProviderAuth.Enabled, FromHeader: c.OpenAI.ProviderAuth.FromHeader,
			TargetHeader: c.OpenAI.ProviderAuth.TargetHeader, Scheme: c.OpenAI.ProviderAuth.Scheme,
			Required: c.OpenAI.ProviderAuth.Required,
		},
	}
	for i := range c.Models {
		policy, err := json.Marshal(c.Models[i].Generation)
		if err != nil {
			return nil, fmt.Errorf("model %s: generation: %w", c.Models[i].ID, err)
		}
		m := openai.Model{ID: fsm.ModelID(c.Models[i].ID), Generation: policy}
		for id, served := range c.Models[i].Providers {
			m.Candidates = append(m.Candidates, openai.Candidate{Provider: id, Served: served})
		}
		v.Models = append(v.Models, m)
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		types := make(map[string]configs.AdapterType, len(n.Adapters))
		for _, a := range n.Adapters {
			types[a.ID] = a.Type
		}
		for _, p := range n.Providers {
			v.Providers = append(v.Providers, openai.Provider{
				ID: fsm.ProviderID(p.ID), Adapter: p.Adapter, OpenAI: types[p.Adapter] == configs.AdapterOpenAI,
				Unlimited: p.Capacity == 0, Models: p.Models, Can: refresh.Can(&p, types[p.Adapter]),
			})
		}
	}
	for _, t := range c.OpenAI.PrincipalTokens {
		v.Tokens = append(v.Tokens, openai.Token{Ref: t.TokenRef, SHA256: t.TokenHashSHA256, Principal: t.PrincipalRef})
	}
	for _, p := range c.OpenAI.Principals {
		v.Principals = append(v.Principals, openai.Principal{Ref: p.Ref, Models: p.Models, Operator: p.Operator})
	}
	return v, nil
}

// names are the ids that metrics may use as labels.
func names(c *configs.Cluster) (models, providers []string) {
	for i := range c.Models {
		models = append(models, c.Models[i].ID)
	}
	for i := range c.Nodes {
		for j := range c.Nodes[i].Providers {
			p := &c.Nodes[i].Providers[j]
			providers = append(providers, p.ID)
			if p.Capacity == 0 {
				models = append(models, "provider:"+p.ID) // that of a request for it alone
			}
		}
	}
	return models, providers
}
