package edged

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/edged/refresh"
	"iop/fsm"
	"iop/storage"
)

const (
	// ackWait is how long a report waits for nodes to confirm. Those that are slower are named, and get it all the same.
	ackWait = 2 * time.Second
	// applyWait is how long an apply may wait for the log, also when the caller has left.
	applyWait = 10 * time.Second
	// leaderWait is how long a change waits for a leader: longer than an election takes.
	leaderWait = 4 * time.Second
)

// refresh is POST /refresh.
func (d *Daemon) refresh(ctx context.Context, q adminapi.RefreshRequest) (*adminapi.RefreshReport, error) {
	return d.refreshFrom(ctx, q)
}

// Reread reads the edge's file again and applies it, as iopctl refresh does, and logs the report.
func (d *Daemon) Reread(ctx context.Context) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return
	}
	r, err := d.refreshFrom(ctx, adminapi.RefreshRequest{})
	switch {
	case err != nil:
		d.log.Error("refresh: failed, nothing was applied", "error", err)
		return
	case r.Result == adminapi.RefreshApplied || r.Result == adminapi.RefreshNoChange:
		d.log.Info("refresh: "+r.Result, "revision", r.Revision, "changed", paths(r), "waiters_affected", r.WaitersAffected,
			"pushed_nodes", r.PushedNodes, "pending_nodes", r.PendingNodes)
	default:
		d.log.Error("refresh: "+r.Result+", nothing was applied", "revision", r.Revision, "changed", paths(r),
			"restart_required", r.RestartRequiredPaths)
	}
	for _, p := range r.Problems {
		d.log.Error("refresh: problem", "file", r.File, "problem", configs.Problem(p).String(), "line", p.Line)
	}
}

func paths(r *adminapi.RefreshReport) []string {
	out := make([]string, 0, len(r.ChangedPaths))
	for i := range r.ChangedPaths {
		out = append(out, r.ChangedPaths[i].Path)
	}
	return out
}

// refreshFrom loads, judges and applies a candidate, and says what came of it. One refresh at a time may propose on this
// edge; one that finds that another came first after it was asked for is a conflict, as it is between edges.
func (d *Daemon) refreshFrom(ctx context.Context, q adminapi.RefreshRequest) (*adminapi.RefreshReport, error) {
	r, err := d.refreshOnce(ctx, q)
	if err != nil || r == nil {
		d.metrics.Refreshed(refreshFailed)
	} else {
		d.metrics.Refreshed(r.Result)
	}
	return r, err
}

// refreshFailed is the result, for the metrics, of a refresh that came to none.
const refreshFailed = "failed"

func (d *Daemon) refreshOnce(ctx context.Context, q adminapi.RefreshRequest) (*adminapi.RefreshReport, error) {
	if err := d.changeable(ctx); err != nil {
		return nil, err
	}
	seen := d.running().Revision
	candidate, report, err := d.candidate(q)
	if err != nil || candidate == nil {
		return report, err
	}
	a, err := d.take(ctx, q, candidate, seen)
	if err != nil {
		return nil, err
	}
	a.Report.File, a.Report.DryRun, a.Report.LiveOnly, a.Report.Warnings = report.File, q.DryRun, q.LiveOnly, report.Warnings
	d.tellNodes(ctx, a.Report)
	return a.Report, nil
}

// take judges and applies a candidate when it has the turn.
func (d *Daemon) take(ctx context.Context, q adminapi.RefreshRequest, candidate *configs.Edge, seen fsm.Revision) (*applying, error) {
	select {
	case d.fresh.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-d.fresh.turn }()
	a, err := d.judge(ctx, q, candidate, seen)
	if err == nil && a.Target != nil {
		err = d.apply(ctx, a)
	}
	return a, err
}

// changeable tells why this edge can't have the cluster changed now; nil = it can, whoever leads: the command goes there.
// What is compared with a candidate is as new then as anybody knows.
func (d *Daemon) changeable(ctx context.Context) error {
	if d.stopping.Load() {
		return unavailable(errors.New("the edge is stopping"))
	}
	if err := d.store.Err(); err != nil {
		return unavailable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	if _, err := d.store.Barrier(ctx); err != nil {
		return unavailable(err)
	}
	d.configured()
	return nil
}

// unavailable is what an operator is told whose change could not be recorded.
func unavailable(cause error) error {
	switch {
	case errors.Is(cause, storage.ErrNoLeader) || errors.Is(cause, storage.ErrNotLeader) || errors.Is(cause, context.DeadlineExceeded):
		return &adminapi.Error{
			Code: "no_leader", Message: fmt.Sprintf("there is no leader that could take the change: %v", cause),
			Cure: "try again when 'iopctl status' shows a leader; nothing was changed, unless the time ran out while it was recorded", Status: http.StatusServiceUnavailable,
		}
	case errors.Is(cause, storage.ErrLevel):
		return &adminapi.Error{
			Code: "old_replicas", Message: "not every replica has a version that knows this",
			Cure: "upgrade the other replicas first", Status: http.StatusServiceUnavailable,
		}
	}
	return &adminapi.Error{
		Code: "unavailable", Message: fmt.Sprintf("the cluster can't be changed now: %v", cause),
		Cure: "see the edge's log, and try again", Status: http.StatusServiceUnavailable,
	}
}

// running is what a candidate is compared with.
func (d *Daemon) running() refresh.Running {
	v := d.view.load()
	return refresh.Running{Revision: v.revision, Cluster: v.cluster, Self: d.self}
}

// applying is a proposal on its way.
type applying struct {
	refresh.Proposal
	on       fsm.Revision // that it was judged against
	document []byte
	plan     fsm.Config
	offer    string // hash of the file on disk, if that is what it is
	dryRun   bool
}

// judge compares the candidate with what runs now. The caller has the turn.
func (d *Daemon) judge(ctx context.Context, q adminapi.RefreshRequest, candidate *configs.Edge, seen fsm.Revision) (*applying, error) {
	running := d.running()
	a := &applying{Proposal: refresh.Judge(running, candidate, q.LiveOnly), on: running.Revision, dryRun: q.DryRun}
	differs := len(a.Report.ChangedPaths) > 0
	if q.Expected != nil && *q.Expected != uint64(running.Revision) || q.Expected == nil && seen != running.Revision && differs {
		a.Report.Result, a.Target = adminapi.RefreshConflict, nil
		return a, nil
	}
	if len(q.File) == 0 && a.Complete && !q.DryRun {
		a.offer = hashOf(candidate.Canonical())
	}
	if a.Target == nil {
		return a, d.offerAgain(ctx, a)
	}
	a.document, a.plan = a.Target.Canonical(), refresh.Plan(a.Target)
	var touched fsm.Preview
	d.store.View(func(m *fsm.Machine) { touched = m.Preview(&a.plan, adminapi.WaitersMax) })
	refresh.Touch(a.Report, touched)
	return a, nil
}

// apply proposes the target, if it is not a dry run.
func (d *Daemon) apply(ctx context.Context, a *applying) error {
	if a.dryRun {
		return nil
	}
	next, err := viewOf(a.on+1, a.Target)
	if err != nil {
		return err
	}
	d.fresh.ready.Store(&upcoming{view: next, document: a.document})
	defer d.fresh.ready.Store(nil)
	o, err := d.propose(ctx, &fsm.ApplyConfig{
		Document: a.document, Config: a.plan, Expected: a.on, Edge: fsm.EdgeID(d.self.ID), Offer: a.offer,
	})
	if err != nil {
		return err
	}
	a.Report.Revision = uint64(o.Revision)
	switch {
	case o.Code == fsm.Applied:
		a.Report.Result = adminapi.RefreshApplied
		return nil
	case o.Code == fsm.Refused && o.Refusal == fsm.RefusalConflict:
		a.Report.Result = adminapi.RefreshConflict
		return nil
	}
	return fmt.Errorf("apply configuration: %s %s", o.Code, o.Refusal)
}

// offerAgain notes that the file on disk, which says what runs already, is the one that this edge knows: so the next start
// does not take it for a changed one, and does not roll back what is refreshed until then.
func (d *Daemon) offerAgain(ctx context.Context, a *applying) error {
	if a.Report.Result != adminapi.RefreshNoChange || a.offer == "" {
		return nil
	}
	edge := fsm.EdgeID(d.self.ID)
	c := &fsm.ApplyConfig{Expected: a.on, Edge: edge, Offer: a.offer}
	known := false
	d.store.View(func(m *fsm.Machine) {
		known = m.Offer(edge) == a.offer
		c.Document, c.Config = m.Document(), m.Config()
	})
	if known {
		return nil
	}
	_, err := d.propose(ctx, c)
	return err
}

// propose goes on when the caller has left: what was begun is followed to its end.
func (d *Daemon) propose(ctx context.Context, c *fsm.ApplyConfig) (fsm.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyWait)
	defer cancel()
	o, err := d.store.Do(ctx, c)
	switch {
	case errors.Is(err, storage.ErrTooLarge):
		return o, &adminapi.Error{
			Code: "too_large", Message: "the configuration is larger than an entry of the log may be",
			Cure: "split it over several clusters", Status: http.StatusRequestEntityTooLarge,
		}
	case err != nil:
		return o, unavailable(err)
	}
	return o, nil
}
