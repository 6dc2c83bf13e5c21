package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/edged/refresh"
	"iop/fsm"
	"iop/storage"
)

// refreshOffline compares a file with the data directory of a stopped edge. The edge's own part is not compared: only a
// running edge knows what it was started with.
func (g *globals) refreshOffline(c *cobra.Command, o *refreshOptions, q adminapi.RefreshRequest) (*adminapi.RefreshReport, error) {
	switch {
	case !o.dryRun:
		return nil, usage(c, errors.New("--data-dir is for --dry-run: a stopped edge applies its file when it is started"))
	case len(q.File) == 0:
		return nil, usage(c, errors.New("--data-dir needs -f: a stopped edge reads no file"))
	}
	return g.compareOffline(o.dataDir, o.file, q)
}

func (g *globals) compareOffline(dir, file string, q adminapi.RefreshRequest) (*adminapi.RefreshReport, error) {
	m, _, err := storage.Inspect(dir)
	if err != nil {
		return nil, err
	}
	e, warnings, err := configs.ParseEdge(q.File, file, g.env)
	var problems *configs.Problems
	r := refresh.NewReport()
	switch {
	case errors.As(err, &problems):
		refresh.Invalid(r, problems)
		r.Revision = uint64(m.Revision())
	case err != nil:
		return nil, err
	default:
		if r, err = judgeOffline(m, e, q); err != nil {
			return nil, err
		}
	}
	refresh.Warn(r, warnings)
	r.File, r.DryRun, r.LiveOnly = file, true, q.LiveOnly
	return r, nil
}

func judgeOffline(m *fsm.Machine, e *configs.Edge, q adminapi.RefreshRequest) (*adminapi.RefreshReport, error) {
	running := refresh.Running{Revision: m.Revision(), Cluster: configs.NewCluster()}
	if d := m.Document(); len(d) > 0 {
		var err error
		if running.Cluster, err = configs.ParseCluster(d); err != nil {
			return nil, fmt.Errorf("revision %d: %w", m.Revision(), err)
		}
	}
	p := refresh.Judge(running, e, q.LiveOnly)
	switch {
	case q.Expected != nil && *q.Expected != uint64(m.Revision()):
		p.Report.Result = adminapi.RefreshConflict
	case p.Target != nil:
		plan := refresh.Plan(p.Target)
		refresh.Touch(p.Report, m.Preview(&plan, adminapi.WaitersMax))
		for i := range e.Nodes {
			p.Report.PendingNodes = append(p.Report.PendingNodes, e.Nodes[i].ID)
		}
		slices.Sort(p.Report.PendingNodes)
	}
	return p.Report, nil
}
