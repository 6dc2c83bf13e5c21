package edged

import (
	"bytes"
	"sync"
	"sync/atomic"

	"iop/edged/openai"
	"iop/fsm"
)

// configuration is what an edge has around its view while the configuration changes.
type configuration struct {
	turn  chan struct{}            // held by the one refresh of this edge that is in progress
	ready atomic.Pointer[upcoming] // the view of the change that this edge has proposed
	past  revisions                // that came into effect one after the other

	// swapping is held while the rooms get a view, so that they all have the same one.
	swapping *sync.Mutex
}

// upcoming is a view made before its revision is in effect, so that the dispatcher has less to do.
type upcoming struct {
	view     *view
	document []byte
}

func newConfiguration() configuration {
	return configuration{turn: make(chan struct{}, 1), past: revisions{turn: make(chan struct{}, 1)}, swapping: &sync.Mutex{}}
}

// configured gives the rooms the configuration that the machine has now, whoever applied it, if they have not got it yet.
// The dispatcher calls it before it tells anybody what was decided under it; others may.
func (d *Daemon) configured() {
	d.fresh.swapping.Lock()
	defer d.fresh.swapping.Unlock()
	var revision fsm.Revision
	var own bool
	u := d.fresh.ready.Load()
	d.store.View(func(m *fsm.Machine) {
		revision = m.Revision()
		d.fresh.past.noticed(m)
		own = u != nil && u.view.revision == revision && bytes.Equal(u.document, m.Document())
	})
	if revision <= d.view.load().revision {
		return
	}
	var v *view
	if own {
		v = u.view
	} else {
		var err error
		if v, err = readView(d.store); err != nil {
			d.log.Error("a configuration that another edge applied can't be read; the old one stays in use here", "error", err)
			return
		}
	}
	d.swap(v)
}

// swap gives a view to the rooms: first to those that answer clients, then to the nodes. The caller holds swapping.
func (d *Daemon) swap(v *view) {
	d.view.store(v)
	d.metrics.SetNames(names(v.cluster))
	if d.openai != nil {
		if err := d.openai.Swap(v.public); err != nil {
			d.log.Error("the new configuration can't be used for clients; the old one stays in use for them", "error", err)
		}
	}
	if l := d.links.Load(); l != nil {
		l.SetFenceTimeout(v.cluster.ProviderPool.FenceTimeoutMS.Duration())
		l.Push(uint64(v.revision), v.payload)
	}
}

// join makes the public API part of the edge, with the newest view.
func (d *Daemon) join(public *openai.Server) error {
	d.fresh.swapping.Lock()
	defer d.fresh.swapping.Unlock()
	if err := public.Swap(d.view.load().public); err != nil {
		return err
	}
	d.openai = public
	d.metrics.SetNames(names(d.view.load().cluster))
	d.metrics.SetState(d.state)
	return nil
}
