package edged

import (
	"context"
	"slices"
	"time"

	"iop/edged/adminapi"
)

// tellNodes adds to a report which nodes have confirmed its revision, and waits a little for those that are ready. In a dry
// run it tells who would be sent it at once.
func (d *Daemon) tellNodes(ctx context.Context, r *adminapi.RefreshReport) {
	switch r.Result {
	case adminapi.RefreshDryRun:
		ready, rest, _ := d.confirmed(0)
		r.PushedNodes, r.PendingNodes = ready, rest
	case adminapi.RefreshApplied:
		r.PushedNodes, r.PendingNodes = d.awaitConfirmed(ctx, r.Revision)
	}
}

func (d *Daemon) awaitConfirmed(ctx context.Context, revision uint64) (have, rest []string) {
	timer := time.NewTimer(ackWait)
	defer timer.Stop()
	for {
		news := d.links.Load().News()
		have, rest, open := d.confirmed(revision)
		if open == 0 {
			return have, rest
		}
		select {
		case <-news:
		case <-timer.C:
			return have, rest
		case <-ctx.Done():
			return have, rest
		case <-d.quit:
			return have, rest
		}
	}
}

// confirmed divides the configured nodes into those with a ready link that have confirmed the revision, and the rest. open
// counts those of the rest that have a link and no answer yet, so that waiting makes sense.
func (d *Daemon) confirmed(revision uint64) (have, rest []string, open int) {
	links := map[string]bool{}
	for _, l := range d.links.Load().Status() {
		switch {
		case l.Ready && l.Revision >= revision:
			links[string(l.Node)] = true
		case l.Ready && l.Refused < revision:
			open++
		}
	}
	have, rest = []string{}, []string{}
	for id := range d.view.load().nodes {
		if links[string(id)] {
			have = append(have, string(id))
		} else {
			rest = append(rest, string(id))
		}
	}
	slices.Sort(have)
	slices.Sort(rest)
	return have, rest, open
}
