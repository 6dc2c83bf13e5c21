package edged

import (
	"context"
	"time"

	"iop/storage"
)

const (
	// compareEach is how often the leader has all replicas compared.
	compareEach = 5 * time.Minute
	// compareLook is how often a replica looks whether it leads and whether it is time.
	compareLook = time.Second
)

// keepComparing has the leader compare the states of all replicas now and then, and tells the metrics. It is beside the
// comparison every so many entries, in which a replica that differs ends: there is something to see here before, and of a
// cluster in which little happens. Nothing is written while nothing has happened.
func (d *Daemon) keepComparing(ctx context.Context) {
	ticker := time.NewTicker(compareLook)
	defer ticker.Stop()
	var c comparison
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if d.store.Err() != nil {
				continue
			}
			if d.store.Role() != storage.RoleLeader {
				c = comparison{}
				d.metrics.DigestsForgotten()
				continue
			}
			if c.due(now, d.store.Stats().Applied, len(d.store.Members())) {
				d.compare(ctx)
				c.seen = d.store.Stats().Applied
			}
		}
	}
}

// comparison is when one was made; the zero value = this replica has only just become the leader.
type comparison struct {
	at   time.Time
	seen uint64 // index after it
}

// due tells whether it is time for the next one, and takes it as made. The first one waits for a while too, since after a
// change of leader there is enough to do.
func (c *comparison) due(now time.Time, applied uint64, members int) bool {
	if c.at.IsZero() {
		c.at = now
	}
	if members < 2 || now.Sub(c.at) < compareEach || applied == c.seen {
		return false
	}
	c.at = now
	return true
}

// compare compares all replicas and tells the metrics.
func (d *Daemon) compare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, verifyWait)
	defer cancel()
	v, err := d.store.Verify(ctx)
	if err != nil {
		d.log.Debug("the replicas were not compared", "error", err)
		return
	}
	d.compared(v)
}

// compared tells the metrics, and the log if something is wrong, what a comparison found.
func (d *Daemon) compared(v *storage.Verified) {
	differ, silent := differences(v, d.self.ID)
	d.metrics.DigestsCompared(time.Now(), len(differ), silent)
	if len(differ) > 0 {
		d.log.Error("the state of replicas differs from the leader's; see docs/failures/digest-mismatch.md", "index", v.Index, "replicas", differ)
	}
}

// differences names the replicas whose state is not that of this one, and counts those that did not answer.
func differences(v *storage.Verified, self string) (differ []string, silent int) {
	var own *storage.VerifiedReplica
	for i := range v.Replicas {
		if v.Replicas[i].ID == self && v.Replicas[i].Err == nil {
			own = &v.Replicas[i]
		}
	}
	for i := range v.Replicas {
		r := &v.Replicas[i]
		switch {
		case r.Err != nil:
			silent++
		case own != nil && (r.Index != own.Index || r.Digest != own.Digest):
			differ = append(differ, r.ID)
		}
	}
	return differ, silent
}
