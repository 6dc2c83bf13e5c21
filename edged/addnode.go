package edged

import (
	"context"
	"errors"
	"net/http"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/edged/refresh"
)

// addNodeTries bounds how often a node is added anew because something else changed the configuration in between.
const addNodeTries = 16

// addNode is POST /nodes: it adds a node to what runs, as a refresh whose file differs in nothing else would. It has no
// revision that it expects: what was changed in between is only a reason to judge anew.
func (d *Daemon) addNode(ctx context.Context, q adminapi.NodeRequest) (report *adminapi.RefreshReport, err error) {
	for range addNodeTries {
		report, err = d.tryNode(ctx, q)
		if err != nil || report.Result != adminapi.RefreshConflict {
			break
		}
	}
	return report, err
}

func (d *Daemon) tryNode(ctx context.Context, q adminapi.NodeRequest) (*adminapi.RefreshReport, error) {
	if err := d.changeable(ctx); err != nil {
		return nil, err
	}
	running := d.running()
	report := refresh.NewReport()
	report.Revision, report.DryRun = uint64(running.Revision), q.DryRun
	node, warnings, err := configs.ParseCatalogNode(q.Fragment, "node", q.ID, q.Alias)
	if err != nil {
		return faulty(report, err)
	}
	refresh.Warn(report, warnings)
	cluster, err := configs.ParseCluster(running.Cluster.Canonical())
	if err != nil {
		return nil, err
	}
	for i := range cluster.Nodes {
		if cluster.Nodes[i].ID == node.ID {
			return nil, &adminapi.Error{
				Code: "node_exists", Message: "the configuration has a node " + node.ID + " already",
				Cure: "for a token: iopctl nodes token " + node.ID + "; to change it, edit the edge file", Status: http.StatusConflict,
			}
		}
	}
	cluster.Nodes = append(cluster.Nodes, *node)
	if err := cluster.Validate(); err != nil {
		return faulty(report, err)
	}
	// Not from the file: so the file on disk stays the one that this edge has offered.
	request := adminapi.RefreshRequest{DryRun: q.DryRun, File: []byte("added")}
	a, err := d.take(ctx, request, &configs.Edge{Edge: *d.self, Cluster: *cluster}, running.Revision)
	if err != nil {
		return nil, err
	}
	a.Report.DryRun, a.Report.Warnings = q.DryRun, report.Warnings
	return a.Report, nil
}

// faulty makes the report that of a faulty node; other errors stay errors.
func faulty(report *adminapi.RefreshReport, err error) (*adminapi.RefreshReport, error) {
	var problems *configs.Problems
	if !errors.As(err, &problems) {
		return nil, err
	}
	refresh.Invalid(report, problems)
	return report, nil
}
