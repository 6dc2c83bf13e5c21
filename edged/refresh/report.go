package refresh

import (
	"encoding/json"
	"errors"
	"slices"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/fsm"
)

// Running is what a candidate is compared with.
type Running struct {
	Revision fsm.Revision
	Cluster  *configs.Cluster
	// Self is the replica's own part that the edge was started with; nil = own parts are not compared.
	Self *configs.Self
}

// Proposal is a candidate, judged.
type Proposal struct {
	Report *adminapi.RefreshReport
	// Target is what to apply; nil = nothing. It has been checked.
	Target *configs.Cluster
	// Complete tells that nothing of the candidate's cluster part is left for a restart.
	Complete bool
}

// Judge compares a checked candidate with what is running. With liveOnly the target leaves out what needs a restart, else
// such a change leaves no target. The report's Result is what would come of it: RefreshDryRun if there is a target.
func Judge(running Running, candidate *configs.Edge, liveOnly bool) Proposal {
	old := configs.Edge{Edge: candidate.Edge, Cluster: *running.Cluster}
	if running.Self != nil {
		old.Edge = *running.Self
	}
	changes := Diff(&old, candidate)
	r := NewReport()
	r.Revision, r.LiveOnly = uint64(running.Revision), liveOnly
	describe(r, changes)
	p := Proposal{Report: r, Complete: true}
	live := false
	for i := range changes {
		live = live || changes[i].Class == Live
		if changes[i].Class != Live && !changes[i].own {
			p.Complete = false
		}
	}
	left := len(r.RestartRequiredPaths) > 0
	switch {
	case left && !liveOnly:
		r.Result = adminapi.RefreshRestartRequired
	case !live:
		r.Result = adminapi.RefreshNoChange
	case p.Complete:
		p.Target, r.Result = &candidate.Cluster, adminapi.RefreshDryRun
	default:
		p.liveTarget(running.Cluster, &candidate.Cluster)
	}
	return p
}

// liveTarget is the live part alone, if that is a configuration by itself.
func (p *Proposal) liveTarget(running, candidate *configs.Cluster) {
	target := LivePart(running, candidate)
	var problems *configs.Problems
	if errors.As(target.Validate(), &problems) {
		Invalid(p.Report, problems)
		for i := range p.Report.Problems {
			p.Report.Problems[i].Cause += " (once what needs a restart is left out)"
		}
		return
	}
	p.Target, p.Report.Result = target, adminapi.RefreshDryRun
}

// NewReport is an empty report: no list is nil.
func NewReport() *adminapi.RefreshReport {
	return &adminapi.RefreshReport{
		ChangedNodes: []string{}, ChangedProviders: []string{}, ChangedModels: []string{},
		ChangedPaths: []adminapi.ChangedPath{}, RestartRequiredPaths: []string{},
		Waiters: []adminapi.AffectedWaiter{}, ProvidersOverCapacity: []adminapi.OverCapacity{},
		PushedNodes: []string{}, PendingNodes: []string{},
		Problems: []adminapi.ConfigProblem{}, Warnings: []adminapi.ConfigWarning{},
	}
}

// Invalid makes the report that of a faulty candidate.
func Invalid(r *adminapi.RefreshReport, problems *configs.Problems) {
	r.Result = adminapi.RefreshInvalid
	for _, x := range problems.List {
		r.Problems = append(r.Problems, adminapi.ConfigProblem(x))
	}
}

// Warn adds what a load has warned of.
func Warn(r *adminapi.RefreshReport, warnings []configs.Warning) {
	for _, w := range warnings {
		r.Warnings = append(r.Warnings, adminapi.ConfigWarning(w))
	}
}

// Touch adds whom the target would touch, as the machine is at the moment.
func Touch(r *adminapi.RefreshReport, v fsm.Preview) {
	r.WaitersAffected = v.Affected
	for _, w := range v.Waiters {
		r.Waiters = append(r.Waiters, adminapi.AffectedWaiter{
			Request: string(w.Request), Model: string(w.Model), Gains: names(w.Gains), Loses: names(w.Loses),
		})
	}
	for _, o := range v.Over {
		over := adminapi.OverCapacity{Provider: string(o.Provider), InFlight: o.InFlight, LongInFlight: o.LongInFlight}
		if o.Capacity > 0 {
			over.Capacity = &o.Capacity
		}
		if o.LongCapacity != fsm.LongUncounted {
			over.LongCapacity = &o.LongCapacity
		}
		r.ProvidersOverCapacity = append(r.ProvidersOverCapacity, over)
	}
}

func names(ids []fsm.ProviderID) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}

func describe(r *adminapi.RefreshReport, changes []Change) {
	for i := range changes {
		c := &changes[i]
		r.ChangedPaths = append(r.ChangedPaths, changedPath(c))
		if c.Class != Live {
			r.RestartRequiredPaths = append(r.RestartRequiredPaths, c.Path)
		}
		if c.node != "" {
			r.ChangedNodes = append(r.ChangedNodes, c.node)
		}
		if c.model != "" {
			r.ChangedModels = append(r.ChangedModels, c.model)
		}
		r.ChangedProviders = append(r.ChangedProviders, c.providers...)
	}
	for _, list := range []*[]string{&r.ChangedNodes, &r.ChangedProviders, &r.ChangedModels} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

func changedPath(c *Change) adminapi.ChangedPath {
	return adminapi.ChangedPath{Path: c.Path, Old: null(c.Old), New: null(c.New), Class: string(c.Class)}
}

// Changed lists what differs between two revisions of the cluster's part; it is not nil.
func Changed(old, now *configs.Cluster) []adminapi.ChangedPath {
	changes := Diff(&configs.Edge{Cluster: *old}, &configs.Edge{Cluster: *now})
	out := make([]adminapi.ChangedPath, 0, len(changes))
	for i := range changes {
		out = append(out, changedPath(&changes[i]))
	}
	return out
}

func null(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}
