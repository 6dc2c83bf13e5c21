package edged

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"iop/fsm"
	"iop/storage"
)

// servers are the parts of an edge that run.
type servers struct {
	over   sync.WaitGroup
	failed chan error // why one of them ended by itself

	openai    *http.Server
	admin     *http.Server
	cutOff    context.CancelFunc // cancels every request that runs
	stopLinks context.CancelFunc
	stopKeep  context.CancelFunc // no further session is opened
}

// How long the steps of a stop may take once requests have had edge.stop_timeout_ms.
const (
	stopCut     = 5 * time.Second // for cancelled runs to be over
	stopGoodbye = 2 * time.Second // for the links, and for the session
	stopHTTP    = 2 * time.Second // for answers that are being written
	stopStore   = 10 * time.Second
)

// serve starts what listens.
func (d *Daemon) serve() *servers {
	s := &servers{failed: make(chan error, 5)}
	requests, cutOff := context.WithCancel(context.Background())
	s.cutOff = cutOff
	s.openai = d.openai.HTTP()
	s.openai.Handler = withBootstrap(d.boot, s.openai.Handler)
	s.openai.ErrorLog = newHTTPLog(d.log)
	s.openai.BaseContext = func(net.Listener) context.Context { return requests }
	s.admin = &http.Server{
		Handler: d.adminHandler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		IdleTimeout: 2 * time.Minute, ErrorLog: newHTTPLog(d.log),
	}
	linking, stopLinks := context.WithCancel(context.Background())
	s.stopLinks = stopLinks
	keeping, stopKeep := context.WithCancel(context.Background())
	s.stopKeep = stopKeep
	s.run("session", func() error { return d.keepSession(keeping) })
	s.run("whereabouts", func() error { d.keepWhereabouts(keeping); return nil })
	s.run("pulse", func() error { d.pulse.Run(keeping); return nil })
	s.run("leader", func() error { return d.watchLeader(keeping) })
	s.run("comparing", func() error { d.keepComparing(keeping); return nil })
	s.run("openai listener", func() error { return d.servePublic(s.openai, d.ports.openai) })
	s.run("admin listener", func() error { return d.serveAdmin(s.admin, d.ports.admin) })
	s.run("node listener", func() error { return d.links.Load().Run(linking) })
	return s
}

// serveAdmin speaks TLS beyond loopback if there is a certificate. Operators show a token, not a certificate.
func (d *Daemon) serveAdmin(h *http.Server, port net.Listener) error {
	files := d.self.TLS
	files.ClientCA = ""
	security, err := serverTLS(&files)
	if err != nil {
		return err
	}
	if security == nil || loopback(port) {
		return h.Serve(port)
	}
	h.TLSConfig = security
	return h.ServeTLS(port, "", "")
}

func (s *servers) run(what string, f func() error) {
	s.over.Go(func() {
		if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%s: %w", what, err)
		}
	})
}

// stop ends the edge in order: nothing new is admitted, what runs may end, what is left is cut off; then nodes are
// told, the session is ended, and the listeners close.
func (s *servers) stop(d *Daemon) error {
	d.stopping.Store(true)
	d.log.Info("stopping", "edge", d.self.ID, "open_requests", d.admission.Open())
	d.admission.Stop()
	close(d.quit)
	if d.store.Err() != nil || d.leader() == "" {
		d.admission.TurnAway() // no slot can be given to them any more, so they need not wait for what runs
	}
	s.drain(d)
	ctx, cancel := context.WithTimeout(context.Background(), stopGoodbye)
	defer cancel()
	d.links.Load().Goodbye(ctx)
	s.stopKeep()
	err := d.endSession(ctx)
	d.admission.Close()
	s.shut()
	s.stopLinks()
	s.over.Wait()
	return err
}

// drain lets requests end, at most edge.stop_timeout_ms, and cuts off those that have not.
func (s *servers) drain(d *Daemon) {
	ctx, cancel := context.WithTimeout(context.Background(), d.self.StopTimeoutMS.Duration())
	defer cancel()
	err := d.admission.Drain(ctx)
	s.cutOff()
	background, stopped := context.WithTimeout(context.Background(), stopCut)
	defer stopped()
	d.openai.Stop(background)
	d.responses.stop(background)
	if err == nil {
		return
	}
	d.log.Warn("cut off what still ran after edge.stop_timeout_ms", "open_requests", d.admission.Open())
	cut, cancelCut := context.WithTimeout(context.Background(), stopCut)
	defer cancelCut()
	if err := d.admission.Drain(cut); err != nil {
		d.log.Warn("some runs have not confirmed their end; their leases end with the session", "error", err)
	}
}

func (d *Daemon) endSession(ctx context.Context) error {
	x := d.tenure.close()
	if x == nil || d.store.Err() != nil {
		return nil // there is none, or nothing can be written any more; the next start ends it
	}
	switch err := x.End(ctx, fsm.ReasonGoodbye); {
	case err == nil || errors.Is(err, storage.ErrSessionEnded):
	case d.leader() == "":
		d.log.Warn("the cluster has no leader to be told that this edge stops; its session ends by itself", "error", err)
	default:
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// shut closes the HTTP listeners after the answers that are being written.
func (s *servers) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), stopHTTP)
	defer cancel()
	for _, h := range []*http.Server{s.openai, s.admin} {
		if err := h.Shutdown(ctx); err != nil {
			_ = h.Close() // those that have not ended by now were warned
		}
	}
}

func (d *Daemon) closeStore() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopStore)
	defer cancel()
	if err := d.store.Close(ctx); err != nil {
		return fmt.Errorf("close data directory: %w", err)
	}
	return nil
}
