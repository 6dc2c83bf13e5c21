package noded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"iop/configs"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// Options of a Daemon.
type Options struct {
	Config  *configs.Node // required
	Logger  *slog.Logger  // nil: silent
	Stdout  io.Writer     // takes the ready line; nil: nobody does
	Version string        // for people

	// Env looks up the keys of backends that the file does not give; nil is os.LookupEnv.
	Env configs.Env
	// Keeper starts the keepers of commands: the value of Keeper, in a program whose main calls Keep. Empty: adapters of
	// type cli can't run, but on Windows, which needs none.
	Keeper []string
	// StopWait is how long running runs may go on after the stop; 0 is 30 s, less than 0 none.
	StopWait time.Duration
}

// stopWaitDefault lets most answers end, and keeps a stop within what service managers wait for.
const stopWaitDefault = 30 * time.Second

// Daemon is a node. Run brings it to life, once.
type Daemon struct {
	config  configs.NodeSelf
	version string
	log     *slog.Logger
	stdout  io.Writer
	hands   *hands
	monitor *monitor
	edges   *edges

	security *tls.Config // shared by all links; nil: plain

	readyOnce sync.Once
	ready     chan struct{}
}

// New builds a daemon and reads the TLS files; nothing is dialled yet. The error is about the configuration.
func New(o Options) (*Daemon, error) {
	if o.Config == nil {
		return nil, errors.New("noded: no configuration")
	}
	o = withDefaults(o)
	d := &Daemon{config: o.Config.Node, version: o.Version, log: o.Logger, stdout: o.Stdout, ready: make(chan struct{})}
	d.monitor = newMonitor(o.Logger, d.report)
	d.hands = newHands(builder{keys: o.Config.Env, env: o.Env, dataDir: o.Config.Node.DataDir, keeper: o.Keeper, rhythm: defaultRhythm(), commands: o.Config.Commands}, d.monitor, o.Logger)
	security, err := loadTLS(d.config.TLS)
	if err != nil {
		return nil, err
	}
	d.security = security
	runs := edgelink.NewRuns()
	d.edges, err = newEdges(d, d.config.Edges, memory{d.config.DataDir}, func(address, edge string) (*edgelink.Link, error) {
		l, err := edgelink.New(edgelink.Options{
			Address:  address,
			Edge:     edge,
			NodeID:   d.config.ID,
			Token:    d.config.Token.Reveal(),
			TLS:      tlsFor(security, address),
			Hands:    d.hands,
			Runs:     runs,
			Logger:   o.Logger,
			Version:  o.Version,
			StopWait: o.StopWait,
			Observe:  d.observe,
			Look:     d.hands.Look,
			Drained:  d.drained,
			Members:  d.members,
		})
		if err != nil {
			return nil, fmt.Errorf("link to %s: %w", address, err)
		}
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	if d.hands.tracer, err = newTracer(&d.config, o.Version, o.Logger); err != nil {
		return nil, err
	}
	return d, nil
}

func withDefaults(o Options) Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.StopWait == 0 {
		o.StopWait = stopWaitDefault
	}
	o.StopWait = max(o.StopWait, 0)
	return o
}

// Run keeps the links up until ctx ends. Then it says goodbye to the edges, lets running runs end within StopWait,
// cancels the rest, and returns nil when all is over.
func (d *Daemon) Run(ctx context.Context) error {
	// The monitor outlives the links, for runs report to it until the last has ended.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watched sync.WaitGroup
	watched.Go(func() { d.monitor.Run(watching) })
	defer func() {
		stopWatching()
		watched.Wait()
		d.hands.close()
	}()
	err := d.edges.run(ctx)
	d.closeTracer()
	d.log.Info("stopped", "node", d.config.ID)
	return err
}

// Ready is closed when the first link is ready.
func (d *Daemon) Ready() <-chan struct{} { return d.ready }

// observe takes what becomes of a link. The links log it themselves.
func (d *Daemon) observe(s edgelink.State) {
	if s.Phase != edgelink.PhaseReady {
		return
	}
	d.readyOnce.Do(func() {
		if _, err := fmt.Fprintf(d.stdout, "noded ready node=%s edges=%d\n", d.config.ID, d.edges.count()); err != nil {
			d.log.Warn("the ready line could not be written", "error", err)
		}
		close(d.ready)
	})
}

// members takes where the cluster's edges are.
func (d *Daemon) members(m edgelink.Membership) { d.edges.take(m, true) }

// drained notes what an operator drains. The edge sends no new run; this is for the node's own log.
func (d *Daemon) drained(provider string, on bool) {
	what := "provider " + provider
	if provider == "" {
		what = "node " + d.config.ID
	}
	if on {
		d.log.Info("drained by an operator: no new run comes, those that run go on", "what", what)
	} else {
		d.log.Info("drained no more", "what", what)
	}
}

// report tells every edge of a provider's condition.
func (d *Daemon) report(c condition) {
	state := nodepb.Health_STATE_HEALTHY
	if c.degraded {
		state = nodepb.Health_STATE_DEGRADED
	}
	d.edges.tell(c.provider, state, c.cause)
}

// tlsFor is the shared configuration with the name that an edge's certificate must have.
func tlsFor(shared *tls.Config, address string) *tls.Config {
	if shared == nil || shared.ServerName != "" {
		return shared
	}
	c := shared.Clone()
	c.ServerName = hostOf(address)
	return c
}
