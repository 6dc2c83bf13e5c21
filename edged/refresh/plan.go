// Package refresh turns a configuration into what admission needs of it. edged calls Plan before every ApplyConfig.
//
// Classification (which changes are live, which need a restart), the dry run and the apply of a refresh come here too. It
// decides nothing about requests and applies nothing by itself.
//
// Where next: configs (the schema and its rules), fsm/config.go (what becomes of the plan).
package refresh

import (
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
		},
		Models: models(c.Models),
	}
	plan.Nodes, plan.Providers = catalog(c.Nodes)
	return plan
}

func span(ms configs.Millis) fsm.Time { return fsm.Time(ms) * fsm.Millisecond }
