// Package refresh turns a configuration into what admission needs of it, and tells what a changed one would change: which
// values, whether a running edge can take them (Live) or needs a restart, and what is left if only the live part is taken.
//
// edged calls Plan before every ApplyConfig and Judge before every refresh; iopctl calls Judge against the files of a
// stopped edge. It reads no file, decides nothing about requests and applies nothing.
//
// Where next: report.go (Judge), class.go (the table of classes), diff.go, live.go, catalog.go (Plan); configs (the schema and
// its rules), fsm/apply.go (what becomes of the plan), edged/refresh.go (the apply).
package refresh

import (
	"cmp"
	"slices"

	"iop/configs"
	"iop/fsm"
)

// Plan gives the part of a checked cluster configuration that admission needs, as plain values in a fixed order: models,
// candidates, nodes and providers by id, so that equal configurations give equal plans.
func Plan(c *configs.Cluster) fsm.Config {
	plan := fsm.Config{
		Pool: fsm.Pool{
			MaxQueue:       c.ProviderPool.MaxQueue,
			QueueTimeout:   span(c.ProviderPool.QueueTimeoutMS),
			StartupGrace:   span(c.ProviderPool.StartupGraceMS),
			ReattachWindow: span(c.ProviderPool.ReattachWindowMS),
			FenceTimeout:   span(c.ProviderPool.FenceTimeoutMS),
			Fair:           c.ProviderPool.Fairness == "principal",

			ResponsesBytes:     unless(c.Responses.MaxBytes, fsm.ResponsesBytes),
			ResponsesRetention: unless(span(c.Responses.RetentionMS), fsm.ResponsesRetention),
		},
		Models:     models(c.Models),
		Principals: principals(c.OpenAI.Principals),
	}
	plan.Nodes, plan.Providers = catalog(c.Nodes)
	return plan
}

// unless gives 0 for the default: as before there was the key, which replicas of an older version can read.
func unless[T comparable](value, standard T) (out T) {
	if value != standard {
		out = value
	}
	return out
}

// principals gives those that have limits, by id.
func principals(list []configs.Principal) []fsm.PrincipalConfig {
	var out []fsm.PrincipalConfig
	for i := range list {
		p := &list[i]
		limit := fsm.PrincipalConfig{ID: fsm.PrincipalID(p.Ref), MaxInFlight: p.MaxInFlight, MaxQueued: fsm.QueuedUnlimited}
		if p.MaxQueued != nil {
			limit.MaxQueued = *p.MaxQueued
		}
		for _, id := range p.Models {
			limit.Models = append(limit.Models, fsm.ModelID(id))
		}
		if limit.MaxInFlight == 0 && limit.MaxQueued == fsm.QueuedUnlimited && len(limit.Models) == 0 {
			continue
		}
		slices.Sort(limit.Models)
		out = append(out, limit)
	}
	slices.SortFunc(out, func(a, b fsm.PrincipalConfig) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func span(ms configs.Millis) fsm.Time { return fsm.Time(ms) * fsm.Millisecond }
