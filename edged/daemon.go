package edged

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"

	"iop/configs"
	"iop/edged/admin"
	"iop/edged/admission"
	"iop/edged/bootstrap"
	"iop/edged/dashboard"
	"iop/edged/metrics"
	"iop/edged/nodelink"
	"iop/edged/openai"
	"iop/edged/pulse"
	"iop/fsm"
	"iop/proto/spans"
	"iop/storage"
)

// Options of a Daemon.
type Options struct {
	Config  *configs.Edge // required, checked
	Logger  *slog.Logger  // nil: silent
	Stdout  io.Writer     // takes the ready line; nil: nobody does
	Version string        // of the program, for people
	// ConfigPath is the file that Config was read from; a refresh reads it again. "" = there is none.
	ConfigPath string
	Env        configs.Env // for ${NAME} in a file that is read again; nil: none is set
}

// Daemon is an edge. Run brings it to life, once.
type Daemon struct {
	o       Options
	self    *configs.Self
	log     *slog.Logger
	metrics *metrics.Metrics
	view    current
	fresh   configuration

	ports     *listeners
	peers     *peers // nil: the edge is alone
	store     *storage.Store
	tenure    *tenure
	admission *admission.Admission
	links     atomic.Pointer[nodelink.Links] // the log may speak of links before there are any
	openai    *openai.Server
	responses *responses
	boot      *bootstrap.Server
	tracer    *spans.Tracer // nil: nothing is recorded
	pulse     *pulse.Pulse

	stopping atomic.Bool
	quit     chan struct{} // closed when the edge stops; ends what only watches
	ready    chan struct{} // closed when the ready line is out
}

// Addrs are the addresses that an edge listens on, ports resolved.
type Addrs struct {
	OpenAI, Node, Admin string
	Cluster             string // "": there is no cluster listener
}

// New opens the ports. The error names the key that is at fault and a cure.
func New(o Options) (*Daemon, error) {
	if o.Config == nil {
		return nil, errors.New("edged: no configuration")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if err := unsupported(&o.Config.Edge); err != nil {
		return nil, err
	}
	tracer, err := newTracer(&o.Config.Edge, o.Version, o.Logger)
	if err != nil {
		return nil, err
	}
	ports, err := listen(&o.Config.Edge)
	if err != nil {
		_ = tracer.Close(context.Background()) // it has nothing to export
		return nil, err
	}
	return &Daemon{
		o: o, self: &o.Config.Edge, log: o.Logger, metrics: metrics.New(), ports: ports, tracer: tracer,
		fresh: newConfiguration(),
		quit:  make(chan struct{}), ready: make(chan struct{}),
	}, nil
}

// unsupported refuses what the schema has and this version can't do, rather than ignore it.
func unsupported(s *configs.Self) error {
	faults := &configs.Problems{}
	for _, key := range []struct {
		path string
		set  bool
	}{
		{"edge.listen.a2a", s.Listen.A2A != ""},
		{"edge.control_plane.address", s.ControlPlane.Address != ""},
	} {
		if key.set {
			faults.List = append(faults.List, configs.Problem{
				Path: key.path, Cause: "this version does not support it", Cure: "remove the key",
			})
		}
	}
	if len(faults.List) == 0 {
		return nil
	}
	return faults
}

// Addrs returns where the edge listens.
func (d *Daemon) Addrs() Addrs {
	a := Addrs{
		OpenAI: d.ports.openai.Addr().String(), Node: d.ports.node.Addr().String(), Admin: d.ports.admin.Addr().String(),
	}
	if d.ports.cluster != nil {
		a.Cluster = d.ports.cluster.Addr().String()
	}
	return a
}

// Ready is closed when the edge takes requests.
func (d *Daemon) Ready() <-chan struct{} { return d.ready }

// Run serves until ctx ends, then stops in an orderly way: no new admissions, running requests end within
// edge.stop_timeout_ms, nodes are told, the session is ended. It returns nil after that, else what failed.
func (d *Daemon) Run(ctx context.Context) (err error) {
	defer d.closeTracer()
	defer d.ports.close()
	if d.peers, err = d.linkPeers(); err != nil {
		return err
	}
	defer d.peers.close()
	lobby := d.receive()
	defer lobby.close()
	if err := d.open(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // stopped while it waited for the other replicas
		}
		return err
	}
	defer func() { err = errors.Join(err, d.closeStore()) }()
	if err := d.build(ctx); err != nil {
		return err
	}
	lobby.close()
	s := d.serve()
	if err := d.announce(); err != nil {
		return errors.Join(err, s.stop(d))
	}
	cause := d.wait(ctx, s)
	return errors.Join(cause, s.stop(d))
}

// open brings the log back and offers the file's configuration.
func (d *Daemon) open(ctx context.Context) error {
	store, err := storage.Open(ctx, storage.Options{
		Dir: d.self.DataDir, Replica: d.self.ID, Version: d.o.Version, Logger: d.log, Observe: d.observe,
		History: storage.History{MaxBytes: d.self.History.MaxBytes, MaxAge: d.self.History.MaxAgeMS.Duration()},
		Cluster: d.membership(),
	})
	if err != nil {
		return fmt.Errorf("edge.data_dir: %w", err)
	}
	d.store = store
	d.fresh.past.store = store
	if err := offer(ctx, store, fsm.EdgeID(d.self.ID), &d.o.Config.Cluster); err != nil {
		return errors.Join(err, d.closeStore())
	}
	v, err := readView(store)
	if err != nil {
		return errors.Join(err, d.closeStore())
	}
	d.view.store(v)
	store.View(d.fresh.past.noticed)
	return nil
}

// build makes the rooms and joins them.
func (d *Daemon) build(ctx context.Context) error {
	d.admission = admission.New(admission.Options{
		Metrics: d.metrics, Translate: translate, Position: d.position, QueueTimeout: d.queueTimeout, Level: d.store.Level,
	})
	edge := fsm.EdgeID(d.self.ID)
	d.tenure = newTenure(d.store, edge, d.log, d.effects)
	d.responses = newResponses(d.store, d.tenure, d.log, d.metrics)
	session, err := d.tenure.open(ctx)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	security, err := serverTLS(&d.self.TLS)
	if err != nil {
		return err
	}
	cluster := &d.view.load().cluster.ProviderPool
	links, err := nodelink.New(nodelink.Options{
		Listener: d.ports.node, TLS: security, Commands: d.tenure, Catalog: &d.view, Edge: edge, ClusterID: d.store.Cluster(),
		Version: d.o.Version,
		Logger:  d.log, Metrics: d.metrics, HeartbeatInterval: d.self.Link.HeartbeatMS.Duration(),
		HeartbeatMissed: d.self.Link.Missed, FenceTimeout: cluster.FenceTimeoutMS.Duration(),
		MaxBodyBytes: d.self.MaxBodyBytes + bodySlack, Permanent: permanent, Members: whereabouts{d.store},
		Fenced: func(id fsm.NodeID) (list []fsm.Generation) {
			d.store.View(func(m *fsm.Machine) { list = m.Fenced(id) })
			return list
		},
	})
	if err != nil {
		return err
	}
	d.links.Store(links)
	d.admission.Attach(session)
	public := openai.New(openai.Options{
		Runner: runner{d.admission}, Backend: backend{links, d.metrics}, Store: d.responses, Ready: d.notReady, Metrics: d.metrics, Logger: d.log,
		MaxBodyBytes: d.self.MaxBodyBytes, QueueKeepalive: d.self.QueueKeepaliveMS.Duration(), CORS: publicCORS(&d.self.CORS),
		Tracer: d.tracer, Place: d.place,
	})
	d.boot = d.newBootstrap()
	d.pulse = pulse.New(d.reading)
	d.view.ownToken = d.nodeToken
	d.responses.serve(public)
	return d.join(public)
}

// bodySlack is what the generation policy and a longer model name may add to a client's body.
const bodySlack = 1 << 20

// announce writes the ready line, and says loudly what is open to everyone.
func (d *Daemon) announce() error {
	a := d.Addrs()
	if len(d.view.load().cluster.OpenAI.PrincipalTokens) == 0 && !loopback(d.ports.openai) {
		d.log.Warn("anyone who reaches this address may use the models: openai.principal_tokens is empty", "openai", a.OpenAI)
	}
	cluster := ""
	if a.Cluster != "" {
		cluster = " cluster=" + a.Cluster
	}
	_, err := fmt.Fprintf(d.o.Stdout, "edged ready openai=%s node=%s admin=%s%s\n", a.OpenAI, a.Node, a.Admin, cluster)
	if err != nil {
		return fmt.Errorf("write the ready line: %w", err)
	}
	close(d.ready)
	return nil
}

// wait returns nil when ctx ends, else why the edge can't go on.
func (d *Daemon) wait(ctx context.Context, s *servers) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	case err := <-d.peers.broken():
		return err
	case <-d.store.Failed():
		return fmt.Errorf("edge.data_dir: %w", d.store.Err())
	}
}

// effects takes what the log says later about this edge's links and requests. The dispatcher calls it; it must not block.
func (d *Daemon) effects(effects []fsm.Effect) {
	for i := range effects {
		if effects[i].Kind == fsm.EffectConfig {
			d.configured()
		}
	}
	if l := d.links.Load(); l != nil {
		l.Effects(effects)
	}
	d.admission.Effects(effects)
	d.responses.effects(effects)
}

func (d *Daemon) position(id fsm.RequestID) (position int) {
	d.store.View(func(m *fsm.Machine) {
		if r, ok := m.Request(id); ok {
			position = r.Position
		}
	})
	return position
}

func (d *Daemon) queueTimeout() fsm.Time {
	return fsm.Time(d.view.load().cluster.ProviderPool.QueueTimeoutMS.Duration())
}

func (d *Daemon) observe(s storage.Stat) {
	switch s.Kind {
	case storage.StatEntry:
		d.metrics.Committed(s.Commands, s.Wait, s.Took, s.Apply)
	case storage.StatSync:
		d.metrics.Synced(s.Took)
	case storage.StatSnapshot:
		d.metrics.Snapshotted(s.Took)
	}
}

func (d *Daemon) adminHandler() http.Handler {
	return admin.New(admin.Options{
		Source: d.store, Edge: fsm.EdgeID(d.self.ID), Program: d.o.Version, Standing: d.standing, Versions: d.nodeVersions, Healthy: d.store.Err,
		AddNode: d.addNode, AddJoin: d.addJoin, Refresh: d.refresh, History: d.fresh.past.list, Revision: d.fresh.past.document, Drain: d.drain, Evict: d.evict, Backend: d.backend, Cluster: members{d},
		Past: past{d.store}, Pulse: d.samples, Metrics: d.metrics.Handler(), Changed: d.metrics.AdminChanged, Page: dashboard.Handler(),
		Token: d.self.Admin.Token.Reveal(), ViewToken: d.self.Admin.ViewToken.Reveal(), Address: d.Addrs().Admin, Stopping: d.quit, Logger: d.log,
	})
}

func (d *Daemon) standing() admin.Standing {
	st := d.store.Standing()
	s := admin.Standing{Role: st.Role, Leader: st.Leader, Index: st.Applied, Lag: st.Behind}
	if d.store.Role() == storage.RoleLeader {
		s.Leader = d.self.ID
	}
	return s
}

// nodeVersions tells of the nodes that are linked to this edge.
func (d *Daemon) nodeVersions() map[fsm.NodeID]string {
	links := d.links.Load().Status()
	out := make(map[fsm.NodeID]string, len(links))
	for i := range links {
		out[links[i].Node] = links[i].Version
	}
	return out
}
