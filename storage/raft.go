package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's own times. A replica that is alone elects itself at once (see elect), so they only bound how long a write
// may hang.
const (
	electionTimeout = 2 * time.Second
	leaderLease     = 500 * time.Millisecond
	// hungWrite is how long a write may take before the store counts as failed.
	hungWrite = 2 * electionTimeout
)

var errNotLeading = errors.New("not the leader")

// raftLog is consensus by hashicorp/raft. Raft's metrics go nowhere: go-metrics has a sink that drops everything until
// somebody sets another one, and nobody does.
type raftLog struct {
	raft    *raft.Raft
	group   *group // nil = alone
	lead    atomic.Bool
	changed chan struct{}
	leaders chan raft.Observation // of a group: another leader, or none
	quit    chan struct{}
	done    chan struct{}
}

type raftParts struct {
	replica string
	logs    logFile
	snaps   raft.SnapshotStore
	machine stateMachine
	logger  *slog.Logger
	group   *group // nil = alone
	// trailing is how many entries raft keeps at least behind a snapshot; guard keeps more. With one entry in flight,
	// historyEntriesMin also keep a follower that falls behind during a snapshot from needing another one for ever.
	trailing uint64
}

func raftConfig(p *raftParts) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(p.replica)
	c.Logger = newHclog(p.logger)
	if p.group != nil {
		c.Logger = newPeerHclog(p.logger)
	}
	c.HeartbeatTimeout = electionTimeout + time.Millisecond // elect lowers it
	c.ElectionTimeout = electionTimeout + time.Millisecond
	c.LeaderLeaseTimeout = leaderLease
	if p.group != nil {
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = electionTime+time.Millisecond, electionTime+time.Millisecond, leaseTime
		c.ShutdownOnRemove = false // the store ends itself, and says why
	}
	c.TrailingLogs = p.trailing
	c.SnapshotInterval = 365 * 24 * time.Hour // the store decides when, see snapshotter
	c.SnapshotThreshold = 1 << 62
	c.NoLegacyTelemetry = true
	return c
}

// bootstrapRaft begins a cluster of these members: it writes the first entry of the log.
func bootstrapRaft(p *raftParts, members []Member) error {
	_, transport := raft.NewInmemTransport(raft.ServerAddress(p.replica))
	var c raft.Configuration
	for _, m := range members {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address), Suffrage: raft.Voter})
	}
	return raft.BootstrapCluster(raftConfig(p), p.logs, p.logs, p.snaps, transport, c)
}

// startRaft opens the log and starts to take part. The state machine is called from now on.
func startRaft(p *raftParts) (*raftLog, error) {
	l := &raftLog{group: p.group, changed: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	var fsm raft.FSM = &raftMachine{p.machine}
	var trans raft.Transport
	if p.group == nil {
		_, trans = raft.NewInmemTransport(raft.ServerAddress(p.replica))
	} else {
		t := newTransport(p.group, p)
		p.group.peers.send = func(id string, args *raft.AppendEntriesRequest) { l.tell(t, p.replica, id, args) }
		trans, fsm = t, &raftGroupMachine{raftMachine{p.machine}, p.group}
	}
	r, err := raft.NewRaft(raftConfig(p), fsm, p.logs, p.logs, p.snaps, trans)
	if err != nil {
		if c, ok := trans.(raft.WithClose); ok {
			err = errors.Join(err, c.Close())
		}
		return nil, err
	}
	l.raft = r
	if p.group == nil {
		go l.follow()
		return l, l.elect(electionTimeout)
	}
	l.leaders = make(chan raft.Observation, 16)
	r.RegisterObserver(raft.NewObserver(l.leaders, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	}))
	p.group.book.fill(r.GetConfiguration().Configuration())
	go l.follow()
	if list := p.group.book.all(); len(list) == 1 && list[0].ID == p.replica {
		return l, l.elect(electionTime)
	}
	return l, nil
}

// elect has a replica that is alone stand for election at once: lowering the heartbeat timeout makes a follower look
// at its timer, and it has never heard of a leader.
func (l *raftLog) elect(timeout time.Duration) error {
	c := l.raft.ReloadableConfig()
	c.HeartbeatTimeout, c.ElectionTimeout = timeout, timeout
	if err := l.raft.ReloadConfig(c); err != nil {
		return fmt.Errorf("configure raft: %w", err)
	}
	return nil
}

// tell sends a peer the commit index (notify.go).
func (l *raftLog) tell(t *transport, self, id string, args *raft.AppendEntriesRequest) {
	to, err := l.group.book.ServerAddr(raft.ServerID(id))
	if err != nil || !l.lead.Load() || l.raft.CurrentTerm() != args.Term {
		return
	}
	args.RPCHeader = raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: t.EncodePeer(raft.ServerID(self), t.LocalAddr()),
	}
	var resp raft.AppendEntriesResponse
	_ = t.AppendEntries(raft.ServerID(id), to, args, &resp) // raft tells it in its own time, too
}

// follow keeps the role; it never calls raft.
func (l *raftLog) follow() {
	defer close(l.done)
	for {
		select {
		case lead := <-l.raft.LeaderCh():
			l.lead.Store(lead)
			l.wake()
		case <-l.leaders:
			l.wake()
		case <-l.quit:
			return
		}
	}
}

func (l *raftLog) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
	if l.group != nil {
		l.group.forward.wake()
	}
}

func (l *raftLog) propose(entry []byte) error {
	if !l.lead.Load() {
		return errNotLeading
	}
	return l.raft.Apply(entry, 0).Error()
}

func (l *raftLog) barrier() error { return l.raft.Barrier(0).Error() }
func (l *raftLog) term() uint64   { return l.raft.CurrentTerm() }
func (l *raftLog) leading() bool  { return l.lead.Load() }
func (l *raftLog) leader() string {
	_, id := l.raft.LeaderWithID()
	return string(id)
}

// seeking tells that this replica stands for election.
func (l *raftLog) seeking() bool { return l.raft.State() == raft.Candidate }

func (l *raftLog) changes() <-chan struct{} { return l.changed }

// behind is how many entries of the log have not been applied yet, raft's own ones counted in.
func (l *raftLog) behind() uint64 {
	applied := l.raft.AppliedIndex() // first, so that it is not newer
	return max(l.raft.LastIndex(), applied) - applied
}

func (l *raftLog) lastIndex() uint64 { return l.raft.LastIndex() }

func (l *raftLog) snapshot() error {
	err := l.raft.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

func (l *raftLog) stop(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- l.raft.Shutdown().Error() }() // ends with raft, or with the process if a write hangs for ever
	var err error
	select {
	case err = <-stopped:
	case <-ctx.Done():
		err = fmt.Errorf("stop raft: %w", ctx.Err())
	}
	l.lead.Store(false)
	close(l.quit)
	<-l.done
	return err
}

// raftMachine makes a stateMachine what raft wants.
type raftMachine struct{ machine stateMachine }

func (m *raftMachine) Apply(l *raft.Log) any {
	m.machine.apply(l.Index, l.Term, l.Data)
	return nil
}

func (m *raftMachine) Snapshot() (raft.FSMSnapshot, error) {
	c, err := m.machine.capture()
	if err != nil {
		return nil, err
	}
	return raftCapture{c}, nil
}

// raftGroupMachine also hears of the members.
type raftGroupMachine struct {
	raftMachine
	group *group
}

// StoreConfiguration implements raft.ConfigurationStore.
func (m *raftGroupMachine) StoreConfiguration(uint64, raft.Configuration) { m.group.nudge() }

func (m *raftMachine) Restore(r io.ReadCloser) error { return m.machine.restore(r) }

type raftCapture struct{ capture }

func (c raftCapture) Persist(sink raft.SnapshotSink) error { return c.write(sink) }

func (raftCapture) Release() {}
