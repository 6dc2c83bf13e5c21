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
