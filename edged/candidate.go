package edged

import (
	"errors"
	"net/http"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/edged/refresh"
)

// candidate loads the file. Without an error and without a candidate the report says what is wrong with it.
func (d *Daemon) candidate(q adminapi.RefreshRequest) (*configs.Edge, *adminapi.RefreshReport, error) {
	report := refresh.NewReport()
	report.Revision, report.DryRun, report.LiveOnly = uint64(d.running().Revision), q.DryRun, q.LiveOnly
	var e *configs.Edge
	var warnings []configs.Warning
	var err error
	switch {
	case len(q.File) > 0:
		e, warnings, err = configs.ParseEdge(q.File, "candidate", d.o.Env)
	case d.o.ConfigPath == "":
		return nil, nil, &adminapi.Error{
			Code: "no_file", Message: "this edge was not started with a file that could be read again",
			Cure: "send the file: iopctl refresh -f FILE", Status: http.StatusBadRequest,
		}
	default:
		report.File = d.o.ConfigPath
		e, warnings, err = configs.LoadEdge(d.o.ConfigPath, d.o.Env)
	}
	refresh.Warn(report, warnings)
	var problems *configs.Problems
	switch {
	case errors.As(err, &problems):
		refresh.Invalid(report, problems)
		return nil, report, nil
	case err != nil:
		return nil, nil, err
	}
	if errors.As(unsupported(&e.Edge), &problems) { // the change of the key is reported as it is
		for _, p := range problems.List {
			refresh.Warn(report, []configs.Warning{{Path: p.Path, Text: p.Cause + ": an edge does not start with it; " + p.Cure}})
		}
	}
	return e, report, nil
}
